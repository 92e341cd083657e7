"""A stage that trains: its files, its processes, its checkpoints and its curve."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from tasks.command import AnyFiles, AnySettings, Invocation, StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.options import WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.threads import is_first_process
from tasks.training.curve import Curve, LiveCurve
from tasks.training.ranks.plan import RankPlan, plan_ranks

if TYPE_CHECKING:
    from tasks.training.loop import Checkpoints

DEFAULT_WORK_FOLDER = ".palimpsest/checkpoints"
"""Where checkpoints lie: outside the outputs, because DVC deletes the outputs of a stage before it runs."""


class TrainedFolder(StageFiles):
    """Where a trained model goes."""

    output: Annotated[str, WRITE_FOLDER]
    """model folder to write; an earlier model there is replaced"""


@dataclass(frozen=True)
class TrainingFrame:
    """What a training has around it; by default nothing."""

    curve: Curve = field(default_factory=Curve)
    later: list[Callable[[], None]] | None = None
    """Gathers what is to be done as soon as the report is written; ``None``: there will be none."""

    def when_reported(self, action: Callable[[], None]) -> None:
        """Do something as soon as the report is written; at once where there will be none."""
        if self.later is None:
            action()
        else:
            self.later.append(action)


_Settings = TypeVar("_Settings", contravariant=True)
_Files = TypeVar("_Files", contravariant=True, bound=StageFiles)


class TrainingStage(Protocol[_Settings, _Files]):
    """A stage that trains."""

    def __call__(
        self,
        settings: _Settings,
        files: _Files,
        cell: Cell,
        resources: ResourceSettings,
        frame: TrainingFrame | None = None,
    ) -> Report:
        """Train, and say what was measured."""


def one_process(settings: object, resources: ResourceSettings) -> RankPlan:
    """A training that runs in one process whatever the resources are."""
    return RankPlan()


def ranks_of_resources(resources: ResourceSettings) -> RankPlan:
    """Which processes train together, as ``resources`` says or as torchrun has started them."""
    return plan_ranks(resources.devices, resources.nodes, resources.strategy, resources.threads)


class OfKind(Protocol):
    """Settings of one of several kinds of model."""

    @property
    def kind(self) -> str:
        """Which."""


def usual_kind(kind: str, files: object) -> dict[str, object]:
    """Settings where none are given, by ``partial``: processes that train together are sent the command."""
    return {"kind": kind}


def ranks_of_transformer(settings: OfKind, resources: ResourceSettings) -> RankPlan:
    """A Transformer alone is trained on several devices."""
    return ranks_of_resources(resources) if settings.kind == "transformer" else RankPlan()


@dataclass(frozen=True)
class TrainingCommand(StageCommand[AnySettings, AnyFiles]):
    """A stage that trains, on several devices where its settings can."""

    stage: TrainingStage[AnySettings, AnyFiles]
    ranks: Callable[[AnySettings, ResourceSettings], RankPlan] = one_process

    def carry_out(self, invocation: Invocation[AnySettings, AnyFiles]) -> Report:
        """Run the stage in one process for each device, which are started where they are not there yet."""
        settings, files, cell, resources = (
            invocation.settings, invocation.files, invocation.cell, invocation.resources,
        )  # fmt: skip
        plan = self.ranks(settings, resources)
        if plan.to_be_started:
            from tasks.training.ranks.processes import start_ranks

            return start_ranks(partial(self.carry_out, invocation), plan)
        later: list[Callable[[], None]] = []
        with invocation.recorded() as recorded:
            curve = Curve()
            if invocation.params and invocation.report:  # an experiment
                curve = LiveCurve(invocation.params, cell, recorded, is_first_process())
            frame = TrainingFrame(curve, later)
            found = self.stage(settings, files, cell, resources, frame)
            recorded.take(found)
        for action in later:
            action()
        return found


def hash_of(document: object) -> str:
    """Hash of what JSON can hold."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@contextmanager
def checkpoints_of(
    files: TrainedFolder, resources: ResourceSettings, plan: RankPlan, identity: dict[str, str], **decisive: object
) -> "Iterator[Checkpoints]":
    """Where a training's checkpoints are; the folder is locked inside the block.

    ``identity`` and what else is ``decisive`` for the result name the folder. Raises ``ParameterError`` where a
    checkpoint is named and none is to be used.
    """
    from tasks.files.work_folder import WorkFolder, work_path
    from tasks.training.loop import LAST, Checkpoints

    if resources.resume_from and not resources.resume:
        raise ParameterError(
            f"resources.resume_from {resources.resume_from!r} goes on from a checkpoint, and resources.resume=false "
            "begins with the first step; set one of them"
        )
    place = resources.work_folder or DEFAULT_WORK_FOLDER, files.output, hash_of([identity, decisive])
    folder = WorkFolder(*place) if plan.is_first else None
    last = work_path(*place) / LAST
    begin_with = Path(resources.resume_from) if resources.resume_from else last
    if folder is not None and not resources.resume:
        last.unlink(missing_ok=True)
    try:
        yield Checkpoints(
            last.parent,
            identity,
            every_steps=resources.checkpoint_steps,
            every_seconds=resources.checkpoint_seconds,
            begin_with=begin_with if resources.resume_from or (resources.resume and last.exists()) else None,
            remove=folder.remove if folder else lambda: None,
        )
    finally:
        if folder is not None:
            folder.close()
