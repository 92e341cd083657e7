"""The frame of a command that trains: its processes, its checkpoints and its curve."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.errors import ParameterError
from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport
from tasks.training.checkpoints import DEFAULT_WORK_FOLDER
from tasks.training.live_curve import Log, live_curve, log_nothing
from tasks.training.ranks.plan import RankPlan

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings
    from tasks.training.checkpoints.store import CheckpointStore


@dataclass(frozen=True)
class TrainingFrame:
    """A command that trains, in one of its processes."""

    command: str
    arguments: argparse.Namespace
    """Of the command, with those of ``add_training_options``."""
    resources: "ResourceSettings"
    plan: RankPlan

    @property
    def report_path(self) -> str | None:
        """Where the report goes; the first rank alone writes."""
        return self.arguments.report if self.plan.is_first else None

    def starts_ranks(self) -> bool:
        """Run the command in one process for each device, where they are not there yet; says whether it did."""
        if not self.plan.to_be_started:
            return False
        from tasks.cli import load_command
        from tasks.training.ranks.processes import start_ranks

        start_ranks(load_command(self.command).run, self.arguments, self.plan)  # type: ignore[union-attr]
        return True

    @contextmanager
    def checkpoints(self, identity: dict[str, str], key: Callable[[], str]) -> "Iterator[CheckpointStore]":
        """The store of this training's checkpoints, open inside the block; only the first rank has a folder.

        ``key`` names the folder. Raises ``ParameterError`` where a checkpoint is named and none is to be used.
        """
        from tasks.files.work_folder import WorkFolder
        from tasks.training.checkpoints.store import CheckpointStore

        arguments, resources = self.arguments, self.resources
        if arguments.resume_from and not arguments.resume:
            raise ParameterError(
                f"--resume-from {arguments.resume_from!r} goes on from a checkpoint, and --no-resume begins anew; give "
                "one of them"
            )
        folder = None
        if self.plan.is_first:
            folder = WorkFolder(arguments.work_folder or DEFAULT_WORK_FOLDER, arguments.output, key())
        store = CheckpointStore(
            identity,
            folder,
            every_steps=resources.checkpoint_steps,
            every_seconds=resources.checkpoint_seconds,
            resume=arguments.resume,
            resume_from=arguments.resume_from,
        )
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def curve(self, cell: Cell, report: StageReport) -> Iterator[Log]:
        """What the loop logs to: on the first rank the cell's MLflow run, where ``tracking`` says so."""
        if not self.plan.is_first:
            yield log_nothing
            return
        with live_curve(self.arguments, cell, report) as on_log:
            yield on_log
