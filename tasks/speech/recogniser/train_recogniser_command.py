"""Train a recogniser (an Emformer transducer), or take a pretrained one.

Training starts from new weights, or from those of another recogniser (setting begin_with). The
recogniser learns from one of two sources:

- --manifest: recordings.
- --input: sentences of a text. A synthesiser speaks them again in every epoch.

A recogniser that learned from synthetic speech is labelled synthetic. The output folder has its
weights, units and feature statistics.

--set kind=emformer_bundle takes the pretrained recogniser of torchaudio as it is. It reads no
speech.

examples:
  palimpsest train-recogniser --input generic.txt --valid valid.txt --output models/recogniser --set training.epochs=0.5
  palimpsest train-recogniser --manifest train.jsonl --valid dev.jsonl --output models/ours \
      --set begin_with=models/recogniser
  palimpsest train-recogniser --set kind=emformer_bundle --set download=true --output models/recogniser
"""

import sys
from functools import partial
from typing import Annotated

from tasks.errors import ParameterError
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.recogniser.settings import EmformerBundle, RecogniserSettings, TrainedRecogniser
from tasks.training.ranks.plan import RankPlan
from tasks.training.stage import TrainedFolder, TrainingCommand, TrainingFrame, ranks_of_resources, usual_kind

SUMMARY = "train a recogniser, or take a pretrained one"


class RecogniserFiles(TrainedFolder):
    """What a recogniser learns from, and where it goes."""

    manifest: Annotated[str | None, READ] = None
    """manifest of the recordings to train on (JSON lines)"""
    input: Annotated[str | None, READ] = None
    """text for the synthesiser, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """held-out manifest (with --manifest) or text (with --input), to measure progress on"""


def train_recogniser(
    settings: TrainedRecogniser | EmformerBundle,
    files: RecogniserFiles,
    cell: Cell,
    resources: ResourceSettings,
    frame: TrainingFrame | None = None,
) -> Report:
    """Train, or take the pretrained one, and write the folder.

    Raises ``ParameterError`` where it is not said what to learn from.
    """
    if isinstance(settings, EmformerBundle):
        return _bundle(settings, files)
    if (files.manifest is None) == (files.input is None):
        raise ParameterError("give --manifest with recordings, or --input with sentences to be spoken, and not both")
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    from tasks.speech.recogniser.training_stage import train_on_speech

    plan = ranks_of_recogniser(settings, resources)
    return train_on_speech(settings, files, resources, plan, frame or TrainingFrame())


def _bundle(settings: EmformerBundle, files: RecogniserFiles) -> Report:
    from tasks.speech.recogniser.folder import NAME, load_bundle, save_recogniser
    from tasks.speech.recogniser.recogniser import parameter_count

    recogniser = load_bundle(settings)
    found = save_recogniser(files.output, recogniser, store=settings.store)
    count = parameter_count(recogniser.model)
    print(f"train-recogniser: {NAME}, {count:,} weights; recogniser in {files.output}", file=sys.stderr)
    return Report().measure(
        recogniser_hash=found,
        parameters_count=count,
        units=len(recogniser.units),
        units_hash=recogniser.units.hash,
        synthetic=False,
        trained=False,
    )


def ranks_of_recogniser(settings: TrainedRecogniser | EmformerBundle, resources: ResourceSettings) -> RankPlan:
    """A recogniser fits on one device, so that ``fsdp``, which is meant for the language model, is ``ddp`` here."""
    if isinstance(settings, EmformerBundle):
        return RankPlan()
    strategy = "ddp" if resources.strategy == "fsdp" else resources.strategy
    return ranks_of_resources(resources.model_copy(update={"strategy": strategy}))


COMMAND = TrainingCommand(
    name="train-recogniser",
    stage=train_recogniser,
    settings=RecogniserSettings,
    files=RecogniserFiles,
    section="speech.recogniser",
    defaults=partial(usual_kind, "trained"),
    every_core=True,
    ranks=ranks_of_recogniser,
)
