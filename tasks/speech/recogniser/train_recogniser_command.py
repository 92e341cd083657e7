"""Train a recogniser (an Emformer transducer), from new weights or from another's (begin_with).

It learns from recordings (--manifest), or from sentences of a text (--input), which a synthesiser
speaks again in every epoch. A recogniser that learned from synthetic speech is labelled synthetic.

examples:
  palimpsest train-recogniser --input generic.txt --valid valid.txt --output models/recogniser --set training.epochs=0.5
  palimpsest train-recogniser --manifest train.jsonl --output models/ours --set begin_with=models/recogniser
"""

from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.recogniser.settings import TrainedRecogniser
from tasks.training.stage import NO_CURVE, Curve, TrainedFolder, TrainingCommand

SUMMARY = "train a recogniser"


class RecogniserFiles(TrainedFolder):
    """Training speech, held-out speech, and the output folder."""

    manifest: Annotated[str | None, READ] = None
    """manifest of the recordings to train on (JSON lines)"""
    input: Annotated[str | None, READ] = None
    """text for the synthesiser, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """held-out manifest (with --manifest) or text (with --input), to measure progress on"""


def train_recogniser(
    settings: TrainedRecogniser,
    files: RecogniserFiles,
    cell: Cell,
    resources: ResourceSettings,
    curve: Curve = NO_CURVE,
) -> Report:
    """Train and write the folder; ``ParameterError`` unless exactly one source of speech is given."""
    if (files.manifest is None) == (files.input is None):
        raise ParameterError("give --manifest with recordings, or --input with sentences to be spoken, and not both")
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    from tasks.speech.recogniser.training_stage import train_on_speech

    return train_on_speech(settings, files, resources, curve)


COMMAND = TrainingCommand(
    "train-recogniser", train_recogniser, TrainedRecogniser, RecogniserFiles, section="speech.recogniser"
)
