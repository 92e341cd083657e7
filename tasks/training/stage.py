"""Stages that train: their files, processes, checkpoints and curve."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from tasks.command import AnyFiles, AnySettings, Invocation, StageCommand, StageFiles
from tasks.files.work_folder import WorkFolder, work_path
from tasks.options import WRITE_FOLDER
from tasks.records.stage_report import Report, StageReport
from tasks.settings.resources import ResourceSettings
from tasks.threads import is_first_process
from tasks.training.ranks import ALONE, RankPlan, plan_ranks, start_ranks

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


class Curve(NamedTuple):
    """Where a training logs its curve: by default nowhere, for a cell of an experiment to MLflow."""

    every_steps: int = 10
    """Optimiser steps between two points."""
    open: Callable[[], AbstractContextManager[Log]] = lambda: nullcontext(log_nothing)


@contextmanager
def _live(invocation: Invocation[Any, Any], report: StageReport) -> Iterator[Log]:
    from tasks.records.run_key import lineage_of
    from tasks.results.tracking.live_run import live_run

    with live_run(str(invocation.params), invocation.cell, lineage_of(report)) as live:
        yield live.log
    if live.warning:
        report.warn(live.warning)


NO_CURVE = Curve()


def usual_kind(kind: str, files: object) -> dict[str, object]:
    """The settings of a default kind; for ``partial``, since processes that train together get the command."""
    return {"kind": kind}


def trains_in_ranks(settings: Any) -> bool:  # noqa: ANN401 - of several commands
    """Whether several devices train a model with these settings: a Transformer without DP-SGD, or a recogniser."""
    private = getattr(getattr(settings, "adaptation", None), "private", None)
    return settings.kind in ("transformer", "trained") and private is None


@dataclass(frozen=True)
class TrainingCommand(StageCommand[AnySettings, AnyFiles]):
    """A stage that trains, on several devices where its settings allow it."""

    def carry_out(self, invocation: Invocation[AnySettings, AnyFiles]) -> Report:
        """Run the stage in one process for each device; missing processes are started."""
        plan = plan_ranks(invocation.resources) if trains_in_ranks(invocation.settings) else ALONE
        if plan.to_be_started:
            start_ranks(invocation.run, plan.devices)
            return Report()
        with invocation.recorded() as recorded:
            curve = NO_CURVE
            if invocation.params and invocation.report:  # an experiment
                from tasks.parameters.parameter_file import read_sections

                every = read_sections(invocation.params, ["tracking"])["tracking"].log_every_steps
                curve = Curve(every, partial(_live, invocation, recorded)) if is_first_process() else Curve(every)
            stage: Callable[..., Report] = self.stage  # it takes a curve too
            found = stage(invocation.settings, invocation.files, invocation.cell, invocation.resources, curve)
            recorded.take(found)
        return found


class Checkpoints(NamedTuple):
    """The checkpoint of a run, and how often it is written."""

    file: Path
    key: str
    """Hash of the vocabulary, the architecture and the order of batches, which a checkpoint must match."""
    every_steps: int = 0
    every_seconds: float = 0.0
    """Used where ``every_steps`` is 0; if both are 0, no checkpoint is written."""
    begin_with: str | None = None


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
    """The checkpoints of a training, removed after success; their folder is locked inside the block.

    ``key`` and the ``decisive`` arguments, which also change the result, name the folder.
    """
    place = resources.work_folder or DEFAULT_WORK_FOLDER, output, hash_of(key, *decisive)
    last = work_path(*place) / "last.ckpt"
    with WorkFolder(*place) if plan.is_first else nullcontext():
        if plan.is_first and not resources.resume:
            last.unlink(missing_ok=True)
        begin_with = resources.resume_from or (str(last) if resources.resume and last.exists() else None)
        yield Checkpoints(last, key, resources.checkpoint_steps, resources.checkpoint_seconds, begin_with)
