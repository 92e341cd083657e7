"""Names of a cell's metrics in MLflow, and training curves in reports and in MLflow."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tasks.results.measure import MLFLOW
from tasks.results.measures import measures, measures_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

CURVES = ("train_loss", "valid_loss", "valid_perplexity", "learning_rate")
"""Curves in a training report: losses in nats a target."""
TRAINING = {
    "training_seconds": "wall_seconds",
    "training_processor_seconds": "processor_seconds",
    "training_peak_memory_bytes": "peak_memory_bytes",
}
"""Cost of the training: name of the metric, and field of the training's report."""


def numbers() -> list[str]:
    """Columns of the summary that are metrics; one with an interval has ``_low`` and ``_high`` too."""
    return [measure.name for measure in measures_of(MLFLOW)]


def numbers_over_seeds() -> list[str]:
    """Mean and standard deviation over the seeds of a condition, equal in every run of the condition."""
    names = (measure.name for measure in measures() if measure.over_seeds)
    return [f"{name}_{statistic}" for name in names for statistic in ("mean", "deviation")]


@cache
def cell_metrics() -> frozenset[str]:
    """Every metric of a cell; all others of its run are curves over optimiser steps."""
    return frozenset(name + end for name in numbers() for end in ("", "_low", "_high")) | {
        *numbers_over_seeds(),
        *TRAINING,
    }


def curve_of(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The points ``{"step", "train_loss" or "valid_loss", …}`` of a training report; empty without any."""
    return report["measured"].get("curve") or []


def curve_points(report: Mapping[str, Any]) -> Iterator[tuple[str, int, float]]:
    """Name, step and value of every point of a report's curves; undefined ones are left out."""
    for point in curve_of(report):
        for name in CURVES:
            value = point.get(name)
            if value is not None and math.isfinite(value):
                yield name, int(point["step"]), float(value)


def logged_points(client: "MlflowClient", run: "Run") -> dict[tuple[str, int], float]:
    """The value of every curve point in a run of MLflow, by name and step."""
    return {
        (name, metric.step): metric.value
        for name in run.data.metrics
        if name not in cell_metrics()
        for metric in client.get_metric_history(run.info.run_id, name)
    }
