"""Count a language model over the units of a recogniser, for 'palimpsest fuse'.

The units are the word pieces that the recogniser emits. In the beam search, such a model gives
every unit its probability at once. Counts have modified Kneser-Ney smoothing.

Its perplexity counts pieces, so it does not compare with the perplexity of a model of words. The
model of a private text is private.

example:
  palimpsest unit-language-model --recogniser models/recogniser --input train.txt --output models/units
"""

from typing import Annotated

from tasks.command import StageCommand
from tasks.language_model.settings import NgramStage
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import TrainedFolder

SUMMARY = "make a language model over a recogniser's units"


class UnitModelFiles(TrainedFolder):
    """Inputs of a model of units, and its folder."""

    recogniser: Annotated[str, READ]
    """recogniser whose units are modelled"""
    input: Annotated[str, READ]
    """text to train on, one sentence a line"""


def unit_language_model(settings: NgramStage, files: UnitModelFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Divide the text into units, count them, write the model."""
    from tasks.language_model.model_folder import check_replaceable
    from tasks.language_model.ngram.folder import save_ngrams
    from tasks.language_model.ngram.kneser_ney import estimate
    from tasks.speech.fusion.scorers import encode_units, unit_vocabulary
    from tasks.speech.recogniser.recogniser import load_recogniser

    check_replaceable(files.output)
    units, order = load_recogniser(files.recogniser).units, settings.ngram.order
    vocabulary = unit_vocabulary(units.pieces)
    text = encode_units(files.input, units, vocabulary)
    model, _ = estimate(text, order, len(vocabulary))
    save_ngrams(files.output, model, vocabulary)
    shown = f"order {order} over {len(units.pieces)} units, from {text.sentences:,} sentences"
    return Report(shown=shown).measure(
        units=len(units.pieces),
        order=order,
        sentences=text.sentences,
    )


COMMAND = StageCommand("unit-language-model", unit_language_model, NgramStage, UnitModelFiles, section={})
