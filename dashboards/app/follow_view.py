"""A running experiment: how far it is, and training curves that grow.

How far the experiment is: the state of every cell, from its runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import streamlit as st

from dashboards.app.charts import curve_chart, table
from dashboards.app.experiment import parameters
from dashboards.app.result_rows import in_table_order
from dashboards.app.tracked_runs import Curve, TrackedRun, read_curve, read_runs
from tasks.errors import PalimpsestError
from tasks.records.cell import Cell
from tasks.records.cells import expected_cells
from tasks.results.tracking.curve import CURVES
from tasks.results.tracking.settings import TrackingSettings


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


REFRESH_SECONDS = 4.0
_AT_FIRST = 6
_TITLES = {
    "train_loss": "training loss, nats a target",
    "valid_loss": "validation loss, nats a target",
    "valid_perplexity": "validation perplexity",
    "learning_rate": "learning rate",
}


def show() -> None:
    """Draw the page."""
    st.title("Follow", anchor=False)
    live = st.toggle(
        f"Read MLflow again every {REFRESH_SECONDS:.0f} seconds",
        value=True,
        key="live",
        bind="query-params",
        persist_state="session",
    )
    st.fragment(_moment, run_every=REFRESH_SECONDS if live else None)()


def _moment() -> None:
    """What is known at this moment; the page draws it again and again, so what goes wrong is shown here."""
    try:
        settings = parameters()
        runs = in_table_order(read_runs(settings.tracking), settings.compare)
    except PalimpsestError as error:
        st.error(str(error), icon=":material/error:")
        return
    found = progress(expected_cells(settings.compare), runs)
    _counts(found)
    _curves(runs)
    _cells(found)


def _counts(found: Sequence[Progress]) -> None:
    counts = {state: sum(one.state is state for one in found) for state in State}
    for column, (state, count) in zip(st.columns(len(counts)), counts.items(), strict=True):
        column.metric(state.value, count)
    st.progress(counts[State.MEASURED] / len(found), f"{counts[State.MEASURED]} of {len(found)} runs are measured")


def _curves(runs: Sequence[TrackedRun]) -> None:
    with_curve = {run.key: run for run in runs if any(name in run.metrics for name in CURVES)}
    if not with_curve:
        st.info("No run has a training curve yet.")
        return
    running = [key for key, run in with_curve.items() if run.status == "RUNNING"]
    latest = sorted(with_curve, key=lambda key: with_curve[key].started)[-_AT_FIRST:]
    left, right = st.columns([3, 1])
    with left:
        chosen = st.multiselect(
            "Runs",
            list(with_curve),
            format_func=lambda key: with_curve[key].label,
            key="run",
            bind="query-params",
            persist_state="session",
            placeholder="those that train, or the last ones",
        )
    with right:
        name = st.selectbox(
            "Curve",
            list(CURVES),
            format_func=_TITLES.__getitem__,
            key="curve",
            bind="query-params",
            persist_state="session",
        )
    name = name or CURVES[0]
    shown = [with_curve[key] for key in chosen or running or latest]
    tracking = parameters().tracking
    curves = {run.label: _curve(tracking, run, name) for run in shown}
    curves = {label: curve for label, curve in curves.items() if curve}
    if not curves:
        st.info(f"None of these runs has a curve of the {_TITLES[name]}.")
        return
    last = "; ".join(f"{label}: {curve[-1][1]:.3f} at step {curve[-1][0]:,}" for label, curve in curves.items())
    st.altair_chart(curve_chart(curves, _TITLES[name]), alt=f"{_TITLES[name]} over optimiser steps; last {last}")
    st.caption(f"Last: {last}")


def _curve(tracking: TrackingSettings, run: TrackedRun, name: str) -> Curve:
    """The curve as it is now; that of a run that has ended is read once."""
    if run.status == "RUNNING":
        return read_curve(tracking, run.run_id, name)
    return _whole_curve(tracking, run.run_id, name, run.ended)


@st.cache_data(show_spinner=False, max_entries=200, hash_funcs={TrackingSettings: repr})
def _whole_curve(tracking: TrackingSettings, run_id: str, name: str, ended: int | None) -> Curve:
    return read_curve(tracking, run_id, name)


def _cells(found: Sequence[Progress]) -> None:
    import pandas as pd

    st.subheader("Every run of the experiment", anchor=False)
    table(
        pd.DataFrame([_line(one) for one in found]),
        "progress",
        title="State, start and last loss of every run of the experiment",
        columns={
            "train_loss": st.column_config.NumberColumn("last training loss", format="%.3f"),
            "valid_loss": st.column_config.NumberColumn("last validation loss", format="%.3f"),
            "perplexity": st.column_config.NumberColumn(format="%.1f"),
            "minutes": st.column_config.NumberColumn("minutes of training", format="%.1f"),
            "started": st.column_config.DatetimeColumn("started (UTC)", format="YYYY-MM-DD HH:mm:ss"),
        },
    )


def _line(one: Progress) -> dict[str, Any]:
    run = one.run
    metrics = run.metrics if run is not None else {}
    return {
        "cell": one.cell.path,
        "state": one.state.value + (" again" if one.earlier and one.state is State.RUNNING else ""),
        "started": _moment_of(run.started) if run is not None else None,
        "minutes": (run.ended - run.started) / 60_000 if run is not None and run.ended else None,
        "train_loss": metrics.get("train_loss"),
        "valid_loss": metrics.get("valid_loss"),
        "perplexity": metrics.get("perplexity"),
        "run_id": run.run_id if run is not None else None,
    }


def _moment_of(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)
