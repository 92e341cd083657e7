"""How far the experiment is: the state of every cell, from its runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dashboards.app.tracked_runs import TrackedRun
from tasks.records.cell import Cell


class State(StrEnum):
    """What is known of a cell."""

    MEASURED = "measured"
    TRAINED = "trained"
    """Its model is there, its numbers are not published yet."""
    RUNNING = "training"
    STOPPED = "stopped"
    """Training failed or was stopped."""
    WAITING = "waiting"
    """No run yet."""


@dataclass(frozen=True)
class Progress:
    """A cell and where it stands."""

    cell: Cell
    state: State
    run: TrackedRun | None
    """The run that says so: the one that was started last."""
    earlier: bool
    """Whether numbers of an earlier state are there."""


def progress(cells: Sequence[Cell], runs: Sequence[TrackedRun]) -> list[Progress]:
    """The state of each cell that the experiment has."""
    by_cell: dict[Cell, list[TrackedRun]] = {}
    for run in runs:
        by_cell.setdefault(run.cell, []).append(run)
    return [_of(cell, by_cell.get(cell, [])) for cell in cells]


def _of(cell: Cell, runs: Sequence[TrackedRun]) -> Progress:
    if not runs:
        return Progress(cell, State.WAITING, None, False)
    # A run that goes on says more than one that has ended.
    run = max(runs, key=lambda run: (run.status == "RUNNING", run.current, run.started))
    earlier = any(other.measured for other in runs if other is not run)
    if run.status == "RUNNING":
        return Progress(cell, State.RUNNING, run, earlier or run.measured)
    if run.status != "FINISHED":
        return Progress(cell, State.STOPPED, run, earlier)
    return Progress(cell, State.MEASURED if run.measured else State.TRAINED, run, earlier)
