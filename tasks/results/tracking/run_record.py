"""The target state of a cell's MLflow run, taken from the reports only."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from tasks.results.measure import MLFLOW
from tasks.results.measures import measures, measures_of
from tasks.results.origin.lock_entries import entries_of, keep_entries, read_lock
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tracking.tracking_store import CURRENT_TAG, cell_tags

CURVES = ("train_loss", "valid_loss", "valid_perplexity", "learning_rate")
"""Curves in a training report and in MLflow, over optimiser steps: losses in nats a target."""
_DIGEST_CHARACTERS = 10
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
    """Target state of one run; times are milliseconds since 1970."""

    cell: Cell
    key: str
    tags: dict[str, str]
    parameters: dict[str, str]
    metrics: dict[str, float]
    measured_at: int
    """Start of the evaluation, which is the time of the metrics."""
    inputs: list[TrackedInput]
    curve: dict[tuple[str, int], float]
    """Value of each curve point by name and step."""
    started: int
    """Start of the training."""
    ended: int

    @property
    def fingerprint(self) -> str:
        """A hash of everything but the tags."""
        points = sorted((name, step, value) for (name, step), value in self.curve.items())
        content = [sorted(self.parameters.items()), sorted(self.metrics.items()), points, self.inputs]
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
    return [_run_record(row, Path(reports), lock) for row in rows]


def _run_record(row: Mapping[str, Any], reports: Path, lock: Mapping[str, Any]) -> RunRecord:
    cell = summarised_cell(row)
    training, evaluation = (read_report(reports / name) for name in (training_report(cell), evaluation_report(cell)))
    key = run_key(cell, lineage_of(training))
    if key != row["key"]:
        raise CorpusError(
            f"the summary holds {row['key']!r} and the reports hold {key!r}: it is of an earlier state; run "
            "'palimpsest summarise' first"
        )
    has_model = cell.method != NO_LANGUAGE_MODEL
    stage = evaluation["dvc_stage"] or stage_name(cell, "evaluate")
    code = evaluation["code"]
    entries = entries_of(stage, reports / evaluation_report(cell), lock)
    tags = {
        **cell_tags(cell, key),
        CURRENT_TAG: "true",
        "commit": code["commit"],
        "mlflow.source.git.commit": code["commit"],
        "dirty": str(bool(code["dirty"])).lower() if code["commit"] else None,
        # Keyed digits: the name of a file in this clone, without information on its content.
        "changes": code.get("changes"),
        "dvc_stage": stage,
        "dvc_lock": keep_entries(entries) if entries else None,
        "protocol": row["signature"],
        "model": ", ".join(training["outputs"]) if has_model else None,
        "flow_run": evaluation.get("flow_run"),
    }
    steps = {"mask": mask_report(cell), "fill": fill_report(cell)}
    settings = {step: read_report(reports / name) for step, name in steps.items() if name is not None}
    settings["pretrain" if cell.seed is None else "adapt"] = training
    started = _milliseconds(training)
    return RunRecord(
        cell=cell,
        key=key,
        tags={name: value for name, value in tags.items() if value},
        parameters=dict(_parameters(settings)),
        metrics={name: float(value) for name, value in _metrics(row) if value is not None},
        measured_at=_milliseconds(evaluation),
        inputs=_inputs(cell, training, evaluation),
        curve=curve_of(training),
        started=started,
        ended=started + round(training["wall_seconds"] * 1000),
    )


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


def _metrics(row: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """The numbers of a row, the ends of their intervals, and mean and deviation over the seeds of the condition."""
    for each in measures_of(MLFLOW):
        yield each.name, row.get(each.name)
        yield from zip((f"{each.name}_low", f"{each.name}_high"), row.get(f"{each.name}_ci") or (), strict=False)
    for each in measures():
        for name in (f"{each.name}_mean", f"{each.name}_deviation") if each.over_seeds else ():
            yield name, (row.get("over_seeds") or {}).get(name)


def curve_of(training: Mapping[str, Any]) -> dict[tuple[str, int], float]:
    """The value of each point of a training report's curves, by name and step; undefined ones are left out."""
    found = {}
    for point in training["measured"].get("curve") or []:
        for name in CURVES:
            if point.get(name) is not None and math.isfinite(point[name]):
                found[name, int(point["step"])] = float(point[name])
    return found


def _inputs(cell: Cell, training: Mapping[str, Any], evaluation: Mapping[str, Any]) -> list[TrackedInput]:
    """Each input once: MLflow stores one context of a file in a run."""
    contexts = {}
    if cell.method == NO_LANGUAGE_MODEL:
        # Nothing was trained: both reports are those of recognition.
        contexts = {name: "model" if name.startswith("models/") else "testing" for name in evaluation["inputs"]}
    else:
        for name in training["inputs"]:
            learned = "initial model" if name.startswith("models/") else "training"
            contexts[name] = "validation" if name.endswith("valid.txt") else learned
        tested = {name: "testing" for name in evaluation["inputs"] if Path(name).suffix}
        contexts |= {name: context for name, context in tested.items() if name not in contexts}
    digests = {**evaluation["inputs"], **training["inputs"]}
    return [TrackedInput(name, digests[name][:_DIGEST_CHARACTERS], context) for name, context in contexts.items()]


def _milliseconds(report: Mapping[str, Any]) -> int:
    """The start of a stage, milliseconds since 1970."""
    return round(datetime.fromisoformat(report["started"]).timestamp() * 1000)
