"""The training curve of a stage, logged while it grows where the parameter file says so."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport

Log = Callable[[int, dict[str, float]], None]
"""Takes an optimiser step and the values measured there."""
_DEFAULT_LOG_EVERY_STEPS = 10


def log_every_steps(arguments: argparse.Namespace) -> int:
    """Optimiser steps between two points of the curve: as ``tracking`` says in an experiment, else 10."""
    if not (arguments.params and arguments.report):
        return _DEFAULT_LOG_EVERY_STEPS
    from tasks.parameters.parameter_file import read_sections

    return read_sections(arguments.params, ["tracking"])["tracking"].log_every_steps


@contextmanager
def live_curve(arguments: argparse.Namespace, cell: Cell, report: StageReport) -> Iterator[Log]:
    """What a training loop logs to: the cell's MLflow run in an experiment, else nothing.

    Where the curve could not be logged, the report says why.
    """
    if not (arguments.params and arguments.report):
        yield log_nothing
        return
    from tasks.records.run_key import lineage_of
    from tasks.results.tracking.live_run import live_run

    with live_run(arguments.params, cell, lineage_of(report)) as live:
        yield live.log
    if live.warning:
        report.warn(live.warning)


def log_nothing(step: int, values: dict[str, float]) -> None:
    """Logs nothing."""
