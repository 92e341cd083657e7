"""Make a language model over the units of a recogniser, for 'palimpsest fuse'.

Its vocabulary is the recogniser's pieces, so every unit has its probability at once: nothing is looked ahead, and no
word is unknown. Models of words cannot be compared with it by perplexity: it counts pieces. The model of a private text
is private.

--kind ngram counts, with modified Kneser-Ney smoothing; --kind transformer trains the network that 'pretrain' trains
on words, and --model names such a folder to be trained on: that is adaptation.

examples:
  palimpsest unit-language-model --recogniser models/recogniser --text train.txt --valid valid.txt --output models/units
  palimpsest unit-language-model --kind transformer --recogniser models/recogniser --text generic.txt --output models/u
  palimpsest unit-language-model --kind transformer --model models/u --recogniser models/recogniser --text filled.txt
      --epochs 1 --output models/adapted_units
  palimpsest fuse --model models/units --recogniser models/recogniser --dev dev.safetensors --dev-manifest dev.jsonl
      --test test.safetensors --test-manifest test.jsonl --output fused.jsonl
"""

import argparse
import sys
from typing import TYPE_CHECKING

from tasks.errors import ParameterError
from tasks.language_model.downstream_model import RESOURCE_OPTIONS, check_options
from tasks.language_model.kind_settings import Kind, NgramSettings
from tasks.language_model.setting_options import add_setting_options, settings_of
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.training.options import TRAINING_PATHS

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "make a language model over a recogniser's units"
READS = ("recogniser", "model", *TRAINING_PATHS)
WRITES = ("output",)
REPLACES = True
NGRAM = "language_model.ngram"
ARCHITECTURE, TRAINING = "language_model.architecture", "language_model.pretraining"
_OPTIONS: dict[Kind, set[str]] = {
    "transformer": {
        *ArchitectureSettings.model_fields,
        *TrainingSettings.model_fields,
        *RESOURCE_OPTIONS,
        "model",
        "threads",
    },
    "ngram": {"order"},
}
"""What each kind of model takes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.training.options import add_training_options

    parser.add_argument("--recogniser", metavar="FOLDER", required=True, help="recogniser whose units are modelled")
    parser.add_argument("--kind", choices=tuple(_OPTIONS), default="ngram", help="kind of model (default: ngram)")
    parser.add_argument("--model", metavar="FOLDER", help="kind transformer: a model over these units to be trained on")
    add_training_options(parser)
    parser.add_argument("--private", action="store_true", help="the text is private: let nobody else read the model")
    add_setting_options(parser, NgramSettings, "kind ngram", leave_out=["generic_weight"])
    add_setting_options(parser, ArchitectureSettings, "kind transformer, a new model")
    add_setting_options(parser, TrainingSettings, "kind transformer, training")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    if arguments.kind == "ngram":
        return [NGRAM]
    return [TRAINING] if arguments.model else [ARCHITECTURE, TRAINING]


def run(arguments: argparse.Namespace) -> None:
    """Divide the text into units, count them or train on them, write the model."""
    check_options(arguments, arguments.kind, _OPTIONS)
    if arguments.kind == "ngram":
        _count(arguments)
    else:
        _train(arguments)


def _count(arguments: argparse.Namespace) -> None:
    from tasks.language_model.model_folder import check_replaceable
    from tasks.language_model.ngram.folder import save_new
    from tasks.language_model.ngram.kneser_ney import estimate
    from tasks.language_model.ngram.mixture import NgramMixture
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain
    from tasks.speech.fusion.subword_fusion import unit_vocabulary
    from tasks.speech.fusion.unit_text import encode_units
    from tasks.speech.recogniser.folder import load_recogniser

    settings = settings_of(arguments, NGRAM, NgramSettings, "model options")
    check_replaceable(arguments.output)
    with recorded_stage(
        "unit-language-model",
        arguments.report,
        parameters={NGRAM: as_plain(settings)},
        inputs=[path for path in (arguments.recogniser, arguments.text, arguments.valid) if path],
        outputs=[arguments.output],
    ) as report:
        units = load_recogniser(arguments.recogniser).units
        vocabulary = unit_vocabulary(units.pieces)
        text = encode_units(arguments.text, units)
        valid = encode_units(arguments.valid, units) if arguments.valid else None
        model, _ = estimate(text, settings.order, len(vocabulary))
        save_new(arguments.output, model, vocabulary, private=arguments.private)
        loss = NgramMixture([model], [1.0]).mean_loss(valid) if valid else None
        report.measure(
            units=len(units.pieces),
            units_hash=units.hash,
            vocabulary_hash=vocabulary.hash,
            order=settings.order,
            sentences=text.sentences,
            text_units=text.words,
            valid_nats_a_unit=loss,
        )
    said = "" if loss is None else f"; {loss:.3f} nats a unit on the validation text"
    print(
        f"unit-language-model: order {settings.order} over {len(units.pieces)} units, from {text.words:,} units of "
        f"{text.sentences:,} sentences{said}",
        file=sys.stderr,
    )


def _train(arguments: argparse.Namespace) -> None:
    from tasks.language_model.training.stage import TrainingStage, run_training_stage
    from tasks.records.cell import Cell
    from tasks.settings.checks import as_plain
    from tasks.speech.fusion.subword_fusion import unit_vocabulary
    from tasks.speech.fusion.unit_text import check_units, unit_encoder
    from tasks.speech.recogniser.folder import load_recogniser

    architecture = settings_of(arguments, ARCHITECTURE, ArchitectureSettings, "architecture options")
    settings = settings_of(arguments, TRAINING, TrainingSettings, "training options")
    if arguments.model:
        asked = [name for name in ArchitectureSettings.model_fields if getattr(arguments, name) is not None]
        if asked:
            raise ParameterError(
                f"--{asked[0].replace('_', '-')} has no use with --model: {arguments.model!r} has its architecture; "
                "leave one of the two out"
            )
    units = load_recogniser(arguments.recogniser).units

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer.folder import load_model
        from tasks.language_model.transformer.model import TransformerLanguageModel

        if arguments.model:
            model, vocabulary = load_model(arguments.model)
            check_units(arguments.model, vocabulary, units)
            return model, vocabulary
        vocabulary = unit_vocabulary(units.pieces)
        model = TransformerLanguageModel(architecture, len(vocabulary))
        model.initialise(settings.seed)
        return model, vocabulary

    parameters = {TRAINING: as_plain(settings)}
    if not arguments.model:
        parameters[ARCHITECTURE] = as_plain(architecture)
    stage = TrainingStage(
        name="unit-language-model",
        cell=Cell(),
        settings=settings,
        seed=settings.seed,
        markers="none",
        private=arguments.private,
        parameters=parameters,
        inputs=[path for path in (arguments.recogniser, arguments.model) if path],
        build=build,
        encode=unit_encoder(units),
    )
    run_training_stage(arguments, stage)
