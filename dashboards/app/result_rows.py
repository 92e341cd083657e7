"""Runs as rows of the summary, so that the app's tables are made by the same functions as all others.

Numbers come from MLflow. What it does not hold (words by technique, intervals over several seeds) is taken from
``results/summary.json`` where that has the same run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboards.app.tracked_runs import TrackedRun
from tasks.parameters.compare_settings import CompareSettings
from tasks.records.cell import Cell
from tasks.records.cells import ORACLE, expected_cells
from tasks.results.measure import APP, Measure
from tasks.results.measures import measures_of
from tasks.results.summary.summary_file import read_summary, summarised_cell
from tasks.results.tracking.curve import numbers

Row = dict[str, Any]
SUMMARY = Path("results") / "summary.json"


def summary_by_key(path: Path = SUMMARY) -> dict[str, Row]:
    """The rows of the summary by key; empty where nothing was summarised on this machine yet."""
    return {row["key"]: row for row in read_summary(path)} if path.is_file() else {}


def advice() -> list[str]:
    """What the report page opens with, a line for each data set: which cell to use."""
    path = SUMMARY.with_name("verdict.txt")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [line for line in lines if line.startswith("Verdict for ")]


def result_rows(runs: Iterable[TrackedRun], summary: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """A row for each run."""
    rows = [_row(run, summary.get(run.key, {})) for run in runs]
    for row in rows:
        row["protocol_differs"] = _other_protocol(row, rows)
    return rows


def selected_rows(rows: Sequence[Row], chosen: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Rows whose value of every dimension is among the chosen ones; ``None`` in a dimension is always chosen.

    A condition of which not all seeds are chosen loses what is known of all of them together.
    """
    mine = [row for row in rows if all(row[name] is None or row[name] in values for name, values in chosen.items())]
    whole, part = Counter(map(_condition, rows)), Counter(map(_condition, mine))
    return [row if whole[_condition(row)] == part[_condition(row)] else {**row, "over_seeds": None} for row in mine]


def measured(rows: Sequence[Row]) -> list[Measure]:
    """Measures of which a row has a number, in their order."""
    return [each for each in measures_of(APP) if any(row.get(each.name) is not None for row in rows)]


def in_table_order(runs: Sequence[TrackedRun], compare: CompareSettings) -> list[TrackedRun]:
    """Runs in the order of the experiment's table (``compare`` of params.yaml), others behind them."""
    places = {cell: place for place, cell in enumerate(expected_cells(compare))}
    return sorted(runs, key=lambda run: (places.get(run.cell, len(places)), run.cell.path, run.started))


def _row(run: TrackedRun, summarised: Mapping[str, Any]) -> Row:
    of_mlflow = numbers()
    row: Row = {name: value for name, value in summarised.items() if name.removesuffix("_ci") not in of_mlflow}
    row |= run.cell.as_dict()
    row |= {"key": run.key, "signature": run.tags.get("protocol"), "run_id": run.run_id}
    for name in ("masked_words", "by_frequency", "masked_word_errors"):
        row.setdefault(name, {})
    row.setdefault("over_seeds", None)
    for name in of_mlflow:
        row[name] = run.metrics.get(name)
        low, high = run.metrics.get(f"{name}_low"), run.metrics.get(f"{name}_high")
        row[f"{name}_ci"] = [low, high] if low is not None and high is not None else None
    return row


def _other_protocol(row: Row, rows: Sequence[Row]) -> list[str]:
    from tasks.language_model.evaluation.protocol import differing_fields

    oracle = next((o for o in rows if (o["dataset"], o["method"]) == (row["dataset"], ORACLE)), None)
    if oracle is None or not row["signature"] or not oracle["signature"]:
        return []
    return differing_fields(row["signature"], oracle["signature"])


def _condition(row: Row) -> Cell:
    return replace(summarised_cell(row), seed=None)
