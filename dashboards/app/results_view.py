"""The results: a table of techniques and methods with intervals and marks, a plot of it, and all numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboards.app.charts import grid_table, interval_charts, table
from dashboards.app.experiment import all_runs, parameters
from dashboards.app.result_rows import (
    Row,
    advice,
    in_table_order,
    measured,
    result_rows,
    selected_rows,
    summary_by_key,
)
from dashboards.page_tables import WITHOUT_CAPITALS, of_lists
from tasks.records.cells import PRETRAINED
from tasks.results.measure import APP, Measure
from tasks.results.tables import Line, Table, measure_grid, tables
from tasks.results.titles import method_name, technique_name
from tasks.results.tracking.curve import numbers

_DIMENSIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    "dataset": ("Corpora", str),
    "technique": ("Techniques", technique_name),
    "method": ("Methods", method_name),
    "filler": ("Fillers", str),
    "seed": ("Seeds", str),
}
"""Dimension of a cell, the heading of its choice, and how a value is written."""


def show() -> None:
    """Draw the page."""
    st.title("Results", anchor=False)
    runs = [run for run in in_table_order(all_runs(), parameters().compare) if run.current and run.measured]
    if not runs:
        st.info("MLflow holds no published run yet: 'palimpsest run' makes them, and 'palimpsest publish' adds them.")
        return
    for line in advice():
        st.success(line)
    rows = result_rows(runs, summary_by_key())
    with st.sidebar:
        chosen = _choose(rows)
    rows = selected_rows(rows, chosen)
    offered = {measure.name: measure for measure in measured([*rows, *_spread(rows)])}
    if not offered:
        st.info("No run is left by what is chosen at the side.")
        return
    name = st.selectbox(
        "Measure",
        list(offered),
        format_func=lambda name: offered[name].title,
        key="measure",
        bind="query-params",
        persist_state="session",
    )
    measure = offered[name or next(iter(offered))]
    for one in tables(rows):
        _dataset(one, measure, several=len({row["dataset"] for row in rows}) > 1)
    st.caption(_legend(measure, rows))
    _all_numbers(rows)


def _choose(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Let the reader choose values of every dimension that has more than one; all are chosen at first.

    The address holds values as they are written: ``?technique=allow+list&method=Top-K&seed=1``.
    """
    chosen: dict[str, list[Any]] = {}
    for name, (heading, written) in _DIMENSIONS.items():
        values = {str(row[name]): row[name] for row in rows if row[name] is not None}
        if len(values) < 2:
            continue
        picked = st.multiselect(
            heading,
            list(values),
            default=list(values),
            format_func=written,
            key=name,
            bind="query-params",
            persist_state="session",
            placeholder="none",
        )
        chosen[name] = [values[text] for text in picked]
    return chosen


def _spread(rows: Sequence[Row]) -> list[Any]:
    """Rows as they stand under each technique: pretrained and Oracle have further numbers there."""
    return [row for one in tables(rows) for row in one.rows]


def _dataset(one: Table, measure: Measure, several: bool) -> None:
    if several:
        st.subheader(one.dataset, anchor=False)
    lines = [line for line in one.all_lines if any(measure.estimate(found) for found in line.by_technique.values())]
    if not one.techniques:
        st.info("Choose a technique to see the table; all numbers of what is chosen stand below.")
        return
    if not lines:
        st.info(f"No run of {one.dataset} has a number of this measure.")
        return
    grid = measure_grid(replace(one, lines=lines, recogniser_alone=None), measure, APP)
    grid_table(grid, f"{one.dataset}_{measure.name}")
    # Many times worse than what is compared: on its scale all others would lie in one point.
    drawn = [line for line in lines if line.method != PRETRAINED] or lines
    if drawn != lines:
        st.caption("The plot leaves the pretrained model out, so that the others can be told apart.")
    _plots(one, drawn, measure)


_BESIDE = 2
"""Panels beside each other; on a narrow page Streamlit puts them below each other."""


def _plots(one: Table, lines: Sequence[Line], measure: Measure) -> None:
    """A panel for each technique, all on one scale."""
    panels = interval_charts(one, lines, measure)
    for start in range(0, len(panels), _BESIDE):
        # Also a single one takes no more than its share of a wide page.
        columns = st.columns(min(_BESIDE, max(2, len(panels))), gap="small")
        for column, (heading, chart) in zip(columns, panels[start : start + _BESIDE], strict=False):
            column.altair_chart(chart, width="stretch", alt=f"{measure.title} of {one.dataset} by method, {heading}")


def _legend(measure: Measure, rows: Sequence[Row]) -> str:
    seeds = {row["seed"] for row in rows if row["seed"] is not None}
    parts = [measure.meaning] if measure.meaning else []
    if len(seeds) > 1:
        together = "their range" if measure.over_seeds else "the interval over sentences and seeds"
        shown = together if measure.interval_over_seeds else "mean ± standard deviation"
        parts.append(f"several seeds: {shown}")
    else:
        parts.append("in brackets the interval of one seed's bootstrap")
    if measure.name == "wer_masked" and of_lists(rows):
        parts.append(WITHOUT_CAPITALS.removesuffix("."))
    if measure.protocol and any(row["protocol_differs"] for row in rows):
        parts.append("‡ measured by another protocol than Oracle's: does not compare")
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _all_numbers(rows: Sequence[Row]) -> None:
    import pandas as pd

    st.subheader("All numbers", anchor=False)
    frame = pd.DataFrame([_flat(row) for row in rows]).astype({"seed": "Int64"}).dropna(axis="columns", how="all")
    table(frame, "runs", title="A line for each chosen run with all its numbers and the ends of their intervals")


def _flat(row: Row) -> dict[str, Any]:
    flat = {name: row[name] for name in ("dataset", "technique", "method", "filler", "seed", "key")}
    for name in numbers():
        flat[name] = row[name]
        if row[f"{name}_ci"] is not None:
            flat[f"{name}_low"], flat[f"{name}_high"] = row[f"{name}_ci"]
    return flat
