"""What MLflow holds of a cell: the names of its metrics, and training curves, as reports and as MLflow hold them."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from tasks.results.measure import MLFLOW
from tasks.results.measures import measures, measures_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

CURVES = ("train_loss", "valid_loss", "valid_perplexity", "learning_rate")
"""Curves that a training report holds: losses in nats a target."""
TRAINING = {
    "training_seconds": "wall_seconds",
    "training_processor_seconds": "processor_seconds",
    "training_peak_memory_bytes": "peak_memory_bytes",
}
"""What training took: name of the metric, and field of the training's report."""
_SYSTEM_PREFIX = "system/"
"""How the names of MLflow's own samples of the machine's load begin."""
_CALLS_AT_ONCE = 8
_RUNS_ASKED_FOR = 200
"""Runs that one question to a database is about."""


def numbers() -> list[str]:
    """Columns of the summary that are metrics; one with an interval has ``_low`` and ``_high`` too."""
    return [measure.name for measure in measures_of(MLFLOW)]


def numbers_over_seeds() -> list[str]:
    """Mean and standard deviation over the seeds of a condition: every run of the condition has the same."""
    names = (measure.name for measure in measures() if measure.over_seeds)
    return [f"{name}_{statistic}" for name in names for statistic in ("mean", "deviation")]


@cache
def cell_metrics() -> frozenset[str]:
    """Every metric of a cell; all others of its run are curves over optimiser steps, or the machine's load."""
    return frozenset(name + end for name in numbers() for end in ("", "_low", "_high")) | {
        *numbers_over_seeds(),
        *TRAINING,
    }


def curve_of(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The points ``{"step", "train_loss" or "valid_loss", …}`` of a training report; empty where it has none."""
    return report["measured"].get("curve") or []


def curve_points(report: Mapping[str, Any]) -> Iterator[tuple[str, int, float]]:
    """Name, step and value of every point of a report's curves; undefined ones are left out."""
    for point in curve_of(report):
        for name in CURVES:
            value = point.get(name)
            if value is not None and math.isfinite(value):
                yield name, int(point["step"]), float(value)


def is_curve(name: str) -> bool:
    """Whether a metric of a run is a training curve."""
    return name not in cell_metrics() and not name.startswith(_SYSTEM_PREFIX)


def logged_points(client: "MlflowClient", run: "Run") -> dict[tuple[str, int], float]:
    """Value of every point of the curves that a run of MLflow holds, by name and step."""
    return {
        (name, metric.step): metric.value
        for name in run.data.metrics
        if is_curve(name)
        for metric in client.get_metric_history(run.info.run_id, name)
    }


def logged_curves(client: "MlflowClient", runs: "Sequence[Run]") -> dict[str, dict[tuple[str, int], float]]:
    """``logged_points`` of many runs, by run id: a database answers for hundreds of runs at once."""
    store = client._tracking_client.store
    if getattr(store, "engine", None) is None:
        # A server answers for one run at a time, and for several at once.
        with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
            points = pool.map(lambda run: logged_points(client, run), runs)
            return {run.info.run_id: found for run, found in zip(runs, points, strict=True)}
    found: dict[str, dict[tuple[str, int], float]] = {run.info.run_id: {} for run in runs}
    having = defaultdict(list)
    for run in runs:
        for name in filter(is_curve, run.data.metrics):
            having[name].append(run.info.run_id)
    for name, run_ids in having.items():
        for start in range(0, len(run_ids), _RUNS_ASKED_FOR):
            asked = run_ids[start : start + _RUNS_ASKED_FOR]
            for entry in store.get_metric_history_bulk(asked, name, None):
                found[entry.run_id][name, entry.step] = entry.value
    return found
