"""Train a language model further on a text: adaptation.

The text is plain (raw or filled), or masked. In masked text a marker such as [MASK] is either a token that the model
learns to predict like any word (--markers token, the paper's Baseline0), or is read but never predicted
(--markers ignore, Baseline1). In an experiment --method says which: baseline0 and baseline1 are the two, every other
method has plain text.

What is done depends on the kind of the model: a Transformer is trained on; a causal language model of Hugging Face's
gets an update of low rank (LoRA), or is trained in full with --full; an n-gram model is mixed with one of the text, by
the weight under which the validation text is most probable.

example:
  palimpsest adapt --model models/pretrained --text filled.txt --output models/adapted
"""

import argparse
from typing import TYPE_CHECKING

from tasks.language_model.downstream_model import RESOURCE_OPTIONS, check_options, kind_sections, kind_to_adapt
from tasks.language_model.kind_settings import CausalAdaptation, Kind, NgramSettings
from tasks.language_model.setting_options import add_setting_options, settings_of
from tasks.language_model.settings import AdaptationSettings
from tasks.records.cell import add_cell_options, cell_of
from tasks.settings.seeds import check_seed
from tasks.training.options import TRAINING_PATHS

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "train a language model further on raw, masked or filled text"
READS = ("model", "generic_text", *TRAINING_PATHS)
WRITES = ("output",)
REPLACES = True
TRAINING = "language_model.adaptation"
_OPTIONS: dict[Kind, set[str]] = {
    "transformer": {*AdaptationSettings.model_fields, *RESOURCE_OPTIONS} - {"seed"},
    "ngram": {"generic_weight"},
    "causal_lm": {*CausalAdaptation.model_fields, "generic_share", "full"},
}
"""What each kind of model takes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.training.options import add_training_options

    parser.add_argument("--model", required=True, help="model folder to begin with")
    add_training_options(parser)
    parser.add_argument(
        "--generic-text", help="generic text that is mixed in where generic_share is above 0, one sentence a line"
    )
    parser.add_argument(
        "--markers",
        choices=("none", "token", "ignore"),
        help="how markers in the text are treated (default: as --method says, or none: the text is plain)",
    )
    parser.add_argument("--method", help="method of the experiment that the text comes from; see above")
    parser.add_argument("--seed", type=int, help="seed of the order of batches and of dropout (default: 1)")
    parser.add_argument("--private", action="store_true", help="make the model readable by its owner alone")
    add_setting_options(parser, AdaptationSettings, "training", leave_out=["seed"])
    add_setting_options(parser, NgramSettings, "kind ngram", leave_out=["order"])
    group = parser.add_argument_group(
        "kind causal_lm",
        "epochs, batch tokens, learning rate, warm-up, decay and clipping are as above, with a learning rate of 0.0005 "
        "and a weight decay of 0 where nothing is said",
    )
    group.add_argument("--full", action="store_true", help="train every weight, not an update of low rank (LoRA)")
    add_cell_options(parser, "dataset", "technique", "filler")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [TRAINING, *kind_sections(arguments)]


def run(arguments: argparse.Namespace) -> None:
    """Read a model, train it on, write it elsewhere."""
    check_seed(arguments.seed)
    kind = kind_to_adapt(arguments)
    check_options(arguments, kind, _OPTIONS)
    match kind:
        case "ngram":
            from tasks.language_model.ngram.stages import adapt as adapt_ngram

            return adapt_ngram(arguments)
        case "causal_lm":
            from tasks.language_model.causal_lm.stages import adapt as adapt_causal_lm

            return adapt_causal_lm(arguments)
    from tasks.language_model.encoded_text import marker_use_of
    from tasks.language_model.generic_mixture import check_generic_share
    from tasks.language_model.training.stage import TrainingStage, run_training_stage
    from tasks.settings.checks import as_plain

    settings = settings_of(arguments, TRAINING, AdaptationSettings, "training options")
    check_generic_share(settings.generic_share, arguments.generic_text)
    mixed_in = arguments.generic_text if settings.generic_share else None
    markers = arguments.markers or marker_use_of(arguments.method)

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer.folder import load_model

        return load_model(arguments.model)

    stage = TrainingStage(
        name="adapt",
        cell=cell_of(arguments),
        settings=settings,
        seed=settings.seed,
        markers=markers,
        private=arguments.private,
        parameters={TRAINING: as_plain(settings), "markers": markers},
        inputs=[path for path in (arguments.model, mixed_in) if path],
        generic_text=mixed_in,
        generic_share=settings.generic_share,
        build=build,
    )
    run_training_stage(arguments, stage)
