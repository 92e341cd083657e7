"""Make a language model over the units of a recogniser, for 'palimpsest fuse'.

The units are the word pieces that the recogniser emits. In the beam search, such a model gives
every unit its probability at once.

The default kind, ngram, counts the units of the text, with modified Kneser-Ney smoothing. The other
kind, transformer, trains the network that 'palimpsest pretrain' trains on words. With --model, it
trains such a model further (adaptation).

Its perplexity counts pieces, so it does not compare with the perplexity of a model of words. The
model of a private text is private.

examples:
  palimpsest unit-language-model --recogniser models/recogniser --input train.txt --output models/units
  palimpsest unit-language-model --set kind=transformer --model models/u --recogniser models/recogniser
      --input filled.txt --set pretraining.epochs=1 --output models/adapted_units
"""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.errors import ParameterError
from tasks.language_model.settings import NgramStage, TransformerPretraining
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import NO_CURVE, Curve, TrainedFolder, TrainingCommand, usual_kind

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "make a language model over a recogniser's units"

UnitModelSettings = Annotated[NgramStage | TransformerPretraining, Field(discriminator="kind")]


class UnitModelFiles(TrainedFolder):
    """Inputs of a model of units, and its folder."""

    recogniser: Annotated[str, READ]
    """recogniser whose units are modelled"""
    input: Annotated[str, READ]
    """text to train on, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """plain text to measure progress on; with patience, the result depends on it"""
    model: Annotated[str | None, READ] = None
    """kind transformer: a model over these units to train further"""


def unit_language_model(
    settings: NgramStage | TransformerPretraining,
    files: UnitModelFiles,
    cell: Cell,
    resources: ResourceSettings,
    curve: Curve = NO_CURVE,
) -> Report:
    """Divide the text into units, count them or train on them, write the model."""
    from tasks.speech.fusion.unit_scorers import encode_units, unit_vocabulary
    from tasks.speech.recogniser.folder import load_recogniser

    if isinstance(settings, TransformerPretraining):
        return _train(settings, files, resources, curve)
    if files.model:
        raise ParameterError(
            f"--model {files.model!r}: a model of kind 'ngram' is counted from scratch; leave it out, or give "
            "--set kind=transformer"
        )
    from tasks.language_model.model_folder import check_replaceable
    from tasks.language_model.ngram.backoff_model import NgramMixture
    from tasks.language_model.ngram.folder import save_ngrams
    from tasks.language_model.ngram.kneser_ney import estimate

    check_replaceable(files.output)
    units, order = load_recogniser(files.recogniser).units, settings.ngram.order
    vocabulary, text = unit_vocabulary(units.pieces), encode_units(files.input, units)
    valid = encode_units(files.valid, units) if files.valid else None
    model, _ = estimate(text, order, len(vocabulary))
    save_ngrams(files.output, model, vocabulary)
    loss = NgramMixture([model], [1.0]).mean_loss(valid) if valid else None
    shown = f"order {order} over {len(units.pieces)} units, from {text.sentences:,} sentences"
    return Report(shown=shown if loss is None else f"{shown}; {loss:.3f} nats a unit on the validation text").measure(
        units=len(units.pieces),
        units_hash=units.hash,
        vocabulary_hash=vocabulary.hash,
        order=order,
        sentences=text.sentences,
        text_units=text.words,
        valid_nats_a_unit=loss,
    )


def _train(
    settings: TransformerPretraining, files: UnitModelFiles, resources: ResourceSettings, curve: Curve
) -> Report:
    from tasks.language_model.training import train_transformer
    from tasks.speech.fusion.unit_scorers import check_units, encode_units, unit_vocabulary
    from tasks.speech.recogniser.folder import load_recogniser

    if settings.architecture.languages or settings.transformer.languages:
        raise ParameterError(
            "a model of a recogniser's units has no words and thus no languages; leave "
            "architecture.languages and transformer.languages out"
        )
    units = load_recogniser(files.recogniser).units

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer.model import TransformerLanguageModel, load_model

        if files.model:
            model, vocabulary = load_model(files.model)
            check_units(vocabulary, units.pieces)
            return model, vocabulary
        vocabulary = unit_vocabulary(units.pieces)
        model = TransformerLanguageModel(settings.architecture, len(vocabulary))
        model.initialise(settings.pretraining.seed)
        return model, vocabulary

    texts = files.input, files.valid
    return train_transformer(
        "unit-language-model", settings.pretraining, build, texts, files, resources, curve,
        encode=lambda path, _vocabulary: encode_units(path, units),
    )  # fmt: skip


PARTS = ("architecture", "pretraining", "kind", "{kind}")
COMMAND = TrainingCommand(
    "unit-language-model", unit_language_model, UnitModelSettings, UnitModelFiles, "language_model", PARTS,
    defaults=partial(usual_kind, "ngram"),
)  # fmt: skip
