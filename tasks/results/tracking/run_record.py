"""The target state of a cell's MLflow run, taken from the reports only."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.records.cells import (
    NO_LANGUAGE_MODEL,
    evaluation_report,
    fill_report,
    mask_report,
    stage_name,
    training_report,
)
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report
from tasks.results.origin.lock_entries import entries_of, keep_entries, read_lock
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tracking.curve import TRAINING, curve_points, numbers, numbers_over_seeds
from tasks.results.tracking.tracking_store import CURRENT_TAG, cell_tags

DIGEST_CHARACTERS = 10
"""Characters of a report's keyed hash that are the digest of a dataset in MLflow."""


class TrackedInput(NamedTuple):
    """A corpus or model from which a run was made or on which it was measured."""

    name: str
    """Path in the checkout."""
    digest: str
    """First characters of its keyed hash."""
    context: str
    """``training``, ``validation``, ``testing``, ``initial model``, or ``model`` of the recogniser alone."""


@dataclass
class RunRecord:
    """Target state of one run."""

    cell: Cell
    key: str
    tags: dict[str, str]
    parameters: dict[str, str]
    metrics: dict[str, float]
    measured_at: int
    """Time of the metrics: start of the evaluation, milliseconds since 1970."""
    inputs: list[TrackedInput]
    curve: dict[tuple[str, int], float]
    """Value of each curve point by name and step."""
    started: int
    """Start of the training, milliseconds since 1970."""
    ended: int
    """End of the training, milliseconds since 1970."""
    made_up: str = field(default="", repr=False)
    """Made-up sentences as the cell masks and fills them."""

    @property
    def fingerprint(self) -> str:
        """A hash of everything but the tags."""
        points = sorted((name, step, value) for (name, step), value in self.curve.items())
        content = [sorted(self.parameters.items()), sorted(self.metrics.items()), points, self.inputs, self.made_up]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def curve_time(self, step: int) -> int:
        """The time of a step, milliseconds since 1970, assuming steps of equal length."""
        last = max((step for _, step in self.curve), default=0)
        return self.started + round((self.ended - self.started) * step / last) if last else self.started


def run_records(rows: Sequence[Mapping[str, Any]], reports: str | Path) -> list[RunRecord]:
    """The records of all rows of the summary.

    The part of ``dvc.lock`` for the numbers is copied into the clone's private folder. Raises ``CorpusError`` if the
    summary is of another state than the reports.
    """
    lock = read_lock()
    made_up = made_up_texts(reports)
    records = []
    for row in rows:
        record = run_record(row, reports)
        record.made_up = made_up.get(record.cell, "")
        evaluation = Path(reports) / evaluation_report(record.cell)
        entries = entries_of(record.tags["dvc_stage"], evaluation, lock)
        if entries:
            record.tags["dvc_lock"] = keep_entries(entries)
        records.append(record)
    return records


def run_record(row: Mapping[str, Any], reports: str | Path) -> RunRecord:
    """The record of one row of the summary.

    Raises ``CorpusError`` if the summary is of another state than the reports.
    """
    cell, reports = summarised_cell(row), Path(reports)
    training = read_report(reports / training_report(cell))
    evaluation = read_report(reports / evaluation_report(cell))
    key = run_key(cell, lineage_of(training))
    if key != row["key"]:
        raise CorpusError(
            f"the summary holds {row['key']!r} and the reports hold {key!r}: it is of an earlier state; run "
            "'palimpsest summarise' first"
        )
    steps = {"mask": mask_report(cell), "fill": fill_report(cell)}
    earlier = {step: read_report(reports / name) for step, name in steps.items() if name is not None}
    trained = "pretrain" if cell.seed is None else "adapt"
    return RunRecord(
        cell=cell,
        key=key,
        tags={**cell_tags(cell, key), **_state_tags(cell, training, evaluation, row)},
        parameters=dict(_parameters({**earlier, trained: training})),
        metrics={**dict(_metrics(row)), **_effort(cell, training)},
        measured_at=_milliseconds(evaluation),
        inputs=list(_inputs(cell, training, evaluation)),
        curve={(name, step): value for name, step, value in curve_points(training)},
        started=_milliseconds(training),
        ended=_milliseconds(training) + round(training["wall_seconds"] * 1000),
    )


def _state_tags(
    cell: Cell, training: Mapping[str, Any], evaluation: Mapping[str, Any], row: Mapping[str, Any]
) -> dict[str, str]:
    code = evaluation["code"]
    tags = {
        "dvc_stage": evaluation["dvc_stage"] or stage_name(cell, "evaluate"),
        CURRENT_TAG: "true",
    }
    if row["signature"]:
        tags["protocol"] = row["signature"]
    if code["commit"]:
        tags |= {"commit": code["commit"], "mlflow.source.git.commit": code["commit"]}
        tags["dirty"] = str(bool(code["dirty"])).lower()
        if code.get("changes"):
            # Keyed digits: the name of a file in this clone, without information on its content.
            tags["changes"] = code["changes"]
    if cell.method != NO_LANGUAGE_MODEL:
        tags["model"] = ", ".join(training["outputs"])
    if evaluation.get("flow_run"):
        tags["flow_run"] = evaluation["flow_run"]
    return tags


def _parameters(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for step, report in reports.items():
        for section, settings in report["parameters"].items():
            # A section's key path would give each technique and method parameters of its own name, which MLflow could
            # not compare: the step replaces it.
            nested = settings if "." in section and isinstance(settings, Mapping) else {section: settings}
            for name, value in flat(nested):
                if value is not None:
                    yield f"{step}.{name}", str(value)


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested settings with their dotted key paths; lists are leaves."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _metrics(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name in numbers():
        if row.get(name) is not None:
            yield name, float(row[name])
        interval = row.get(f"{name}_ci")
        if interval is not None:
            yield f"{name}_low", float(interval[0])
            yield f"{name}_high", float(interval[1])
    over_seeds = row.get("over_seeds") or {}
    for name in numbers_over_seeds():
        if over_seeds.get(name) is not None:
            yield name, float(over_seeds[name])


def _effort(cell: Cell, training: Mapping[str, Any]) -> dict[str, float]:
    """The cost of training; empty for the recogniser alone, which has no language model."""
    if cell.method == NO_LANGUAGE_MODEL:
        return {}
    return {name: float(training[field]) for name, field in TRAINING.items() if training.get(field) is not None}


def _inputs(cell: Cell, training: Mapping[str, Any], evaluation: Mapping[str, Any]) -> Iterator[TrackedInput]:
    """Each input once: MLflow stores one context of a file in a run."""
    if cell.method == NO_LANGUAGE_MODEL:
        # Nothing was trained: both reports are those of recognition.
        for name, digest in evaluation["inputs"].items():
            context = "model" if name.startswith("models/") else "testing"
            yield TrackedInput(name, digest[:DIGEST_CHARACTERS], context)
        return
    for name, digest in training["inputs"].items():
        if name.endswith("valid.txt"):
            context = "validation"
        else:
            context = "initial model" if name.startswith("models/") else "training"
        yield TrackedInput(name, digest[:DIGEST_CHARACTERS], context)
    for name, digest in evaluation["inputs"].items():
        if Path(name).suffix and name not in training["inputs"]:
            yield TrackedInput(name, digest[:DIGEST_CHARACTERS], "testing")


def _milliseconds(report: Mapping[str, Any]) -> int:
    return round(datetime.fromisoformat(report["started"]).timestamp() * 1000)


def made_up_fills(reports: str | Path) -> dict[Cell, list[tuple[str, str, str]]]:
    """Made-up sentences raw, masked and filled, by the cell: the examples of the report page.

    They ship with palimpsest: no corpus is read for them.
    """
    found = {}
    for path in sorted(Path(reports, "examples").rglob("*.json")):
        report = read_report(path)
        measured, dataset, seed = report["measured"], report["cell"]["dataset"], report["seed"]
        for entry in measured["by_technique"]:
            for fill in entry["filled"]:
                cell = Cell(dataset, entry["technique"], fill["method"], fill["filler"], seed)
                found[cell] = list(zip(measured["raw"], entry["masked"], fill["lines"], strict=True))
    return found


def made_up_texts(reports: str | Path) -> dict[Cell, str]:
    """``made_up_fills`` as text."""
    return {
        cell: "Made-up sentences, not of the corpus.\n"
        + "".join(f"\nraw     {raw}\nmasked  {masked}\nfilled  {filled}\n" for raw, masked, filled in forms)
        for cell, forms in made_up_fills(reports).items()
    }
