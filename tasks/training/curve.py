"""The curve of a training: where its losses are logged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport

Log = Callable[[int, dict[str, float]], None]
"""Takes an optimiser step and the values measured there."""


def log_nothing(step: int, values: dict[str, float]) -> None:
    """Logs nothing."""


class Curve:
    """Where a training logs its curve: nowhere."""

    every_steps = 10
    """Optimiser steps between two points."""

    @contextmanager
    def open(self) -> Iterator[Log]:
        """What the loop logs to inside the block."""
        yield log_nothing


@dataclass(frozen=True)
class LiveCurve(Curve):
    """The curve of a cell in an experiment, as the section ``tracking`` of its parameter file says."""

    params: str
    cell: Cell
    report: StageReport
    """The report under construction: it names the run, and says why where the curve could not be logged."""
    is_first: bool
    """Whether this process logs; the others of one training do not."""

    @property
    def every_steps(self) -> int:  # type: ignore[override]
        """As ``tracking`` says, on all processes alike."""
        from tasks.parameters.parameter_file import read_sections

        return read_sections(self.params, ["tracking"])["tracking"].log_every_steps

    @contextmanager
    def open(self) -> Iterator[Log]:
        """Log to the cell's MLflow run."""
        if not self.is_first:
            yield log_nothing
            return
        from tasks.records.run_key import lineage_of
        from tasks.results.tracking.live_run import live_run

        with live_run(self.params, self.cell, lineage_of(self.report)) as live:
            yield live.log
        if live.warning:
            self.report.warn(live.warning)
