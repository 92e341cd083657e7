"""Stages that train: their files, processes, checkpoints and curve."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import numpy as np

from tasks.command import AnyFiles, AnySettings, Invocation, StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.options import WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report, StageReport
from tasks.settings.resources import ResourceSettings
from tasks.threads import is_first_process
from tasks.training.ranks import RankPlan, plan_ranks

DEFAULT_WORK_FOLDER = ".palimpsest/checkpoints"
"""Folder of checkpoints: outside the outputs, because DVC deletes the outputs of a stage before it runs."""

Log = Callable[[int, dict[str, float]], None]
"""Called with an optimiser step and the values measured there."""


def log_nothing(step: int, values: dict[str, float]) -> None:
    """Log nothing."""


class TrainedFolder(StageFiles):
    """Output folder of a trained model."""

    output: Annotated[str, WRITE_FOLDER]
    """model folder to write; an earlier model there is replaced"""


@dataclass(frozen=True)
class Curve:
    """A training curve: by default it is not logged, for a cell of an experiment in MLflow."""

    params: str = ""
    """Parameter file, whose section ``tracking`` names the store."""
    cell: Cell | None = None
    report: StageReport | None = None
    """The report under construction: it names the run, and gets a warning where the curve could not be logged."""

    @property
    def every_steps(self) -> int:
        """Optimiser steps between two points."""
        if self.report is None:
            return 10
        from tasks.parameters.parameter_file import read_sections

        return read_sections(self.params, ["tracking"])["tracking"].log_every_steps

    @contextmanager
    def open(self) -> Iterator[Log]:
        """The function that the loop logs to; of several processes, only the first logs."""
        if self.cell is None or self.report is None or not is_first_process():
            yield log_nothing
            return
        from tasks.records.run_key import lineage_of
        from tasks.results.tracking.live_run import live_run

        with live_run(self.params, self.cell, lineage_of(self.report)) as live:
            yield live.log
        if live.warning:
            self.report.warn(live.warning)


NO_CURVE = Curve()
_Settings = TypeVar("_Settings", contravariant=True)
_Files = TypeVar("_Files", contravariant=True, bound=StageFiles)


class TrainingStage(Protocol[_Settings, _Files]):
    """A stage that trains."""

    def __call__(
        self, settings: _Settings, files: _Files, cell: Cell, resources: ResourceSettings, curve: Curve = NO_CURVE
    ) -> Report:
        """Train and return a report of the measurements."""


def one_process(settings: object, resources: ResourceSettings) -> RankPlan:
    """The plan of a training in one process, whatever the resources are."""
    return RankPlan()


def ranks_of_resources(resources: ResourceSettings) -> RankPlan:
    """The plan of the processes that train together, from ``resources`` or from torchrun."""
    return plan_ranks(resources.devices, resources.nodes, resources.strategy, resources.threads)


class OfKind(Protocol):
    """Settings of one of several kinds of model."""

    @property
    def kind(self) -> str:
        """Kind of the model."""


def usual_kind(kind: str, files: object) -> dict[str, object]:
    """The settings of a default kind; for ``partial``, since processes that train together get the command."""
    return {"kind": kind}


def ranks_of_transformer(settings: OfKind, resources: ResourceSettings) -> RankPlan:
    """The plan for a kind of model: only a Transformer is trained on several devices."""
    return ranks_of_resources(resources) if settings.kind == "transformer" else RankPlan()


@dataclass(frozen=True)
class TrainingCommand(StageCommand[AnySettings, AnyFiles]):
    """A stage that trains, on several devices where its settings allow it."""

    stage: TrainingStage[AnySettings, AnyFiles]
    ranks: Callable[[AnySettings, ResourceSettings], RankPlan] = one_process

    def carry_out(self, invocation: Invocation[AnySettings, AnyFiles]) -> Report:
        """Run the stage in one process for each device; missing processes are started."""
        plan = self.ranks(invocation.settings, invocation.resources)
        if plan.to_be_started:
            from tasks.training.ranks import start_ranks

            return start_ranks(partial(self.carry_out, invocation), plan)
        with invocation.recorded() as recorded:
            curve = NO_CURVE
            if invocation.params and invocation.report:  # an experiment
                curve = Curve(invocation.params, invocation.cell, recorded)
            found = self.stage(invocation.settings, invocation.files, invocation.cell, invocation.resources, curve)
            recorded.take(found)
        return found


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint of a run, and how often it is written."""

    file: Path
    key: str
    """Hash of the vocabulary, the architecture and the order of batches, which a checkpoint must match."""
    every_steps: int = 0
    every_seconds: float = 0.0
    """Used where ``every_steps`` is 0; if both are 0, no checkpoint is written."""
    begin_with: Path | None = None
    """Checkpoint to resume from; ``None``: start with the first step."""


def hash_of(*parts: object) -> str:
    """Hash of arrays, and of documents that JSON can hold."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else json.dumps(part, sort_keys=True).encode())
        digest.update(b"\0")
    return digest.hexdigest()


@contextmanager
def checkpoints_of(
    output: str, resources: ResourceSettings, plan: RankPlan, key: str, *decisive: object
) -> Iterator[Checkpoints]:
    """The checkpoints of a training, removed at the end of the block; their folder is locked inside it.

    ``key`` and the ``decisive`` arguments, which also change the result, name the folder. Raises ``ParameterError``
    where a checkpoint is named although resuming is off.
    """
    from tasks.files.work_folder import WorkFolder, work_path

    if resources.resume_from and not resources.resume:
        raise ParameterError(
            f"resources.resume_from {resources.resume_from!r} goes on from a checkpoint, and resources.resume=false "
            "begins with the first step; set one of them"
        )
    place = resources.work_folder or DEFAULT_WORK_FOLDER, output, hash_of(key, *decisive)
    folder = WorkFolder(*place) if plan.is_first else None
    last = work_path(*place) / "last.ckpt"
    begin_with = Path(resources.resume_from) if resources.resume_from else last
    if folder is not None and not resources.resume:
        last.unlink(missing_ok=True)
    try:
        yield Checkpoints(
            last,
            key,
            resources.checkpoint_steps,
            resources.checkpoint_seconds,
            begin_with if resources.resume_from or (resources.resume and last.exists()) else None,
        )
        if folder is not None:
            folder.remove()
    finally:
        if folder is not None:
            folder.close()
