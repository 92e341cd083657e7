"""The MLflow runs of unlearning methods, one for each method in the reports of ``compare-unlearning``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.records.cell import Cell
from tasks.records.run_key import lineage_of, run_key
from tasks.results.forgetting import read_forgetting
from tasks.results.summary.flat_tables import with_ends
from tasks.results.tracking.run_record import RunRecord, flat, milliseconds
from tasks.results.tracking.tracking_store import CURRENT_TAG, cell_tags

GROUP = "forgetting"
"""Tag of these runs, which are no cells of the comparison."""
_PREFIX = "unlearned_"
"""Prefix of a method's name: it is no method of filling."""


def forgetting_records(reports: str | Path) -> Iterator[RunRecord]:
    """A record of every unlearning method, and of the models before and retrained, for each report."""
    for report in read_forgetting(reports):
        for name, row in report["measured"]["by_method"].items():
            yield _record(name, row, report)


def _record(name: str, row: Mapping[str, Any], report: Mapping[str, Any]) -> RunRecord:
    cell = Cell(dataset=report["cell"]["dataset"], method=f"{_PREFIX}{name}", seed=report["cell"]["seed"])
    key = run_key(cell, lineage_of(report))
    started = milliseconds(report)
    given = {key: value for key, value in report["parameters"].items() if key != "methods"}
    given["way"] = report["parameters"]["methods"].get(name, {})
    tags = {**cell_tags(cell, key), "group": GROUP, CURRENT_TAG: "true"}
    tags["dvc_stage"] = report["dvc_stage"] or report["stage"]
    if report["code"]["commit"]:
        tags |= {"commit": report["code"]["commit"], "dirty": str(bool(report["code"]["dirty"])).lower()}
    return RunRecord(
        cell=cell,
        key=key,
        tags=tags,
        parameters={f"unlearning.{name}": str(value) for name, value in flat(given) if value is not None},
        metrics={name: float(value) for name, value in with_ends(row) if isinstance(value, int | float)},
        measured_at=started,
        inputs=[],
        curve={},
        started=started,
        ended=started + round(report["wall_seconds"] * 1000),
    )
