"""Training curves: as a report holds them, and as MLflow holds them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.reports.metric_names import CELL_METRICS, CURVES


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


def logged_points(client: Any, run: Any) -> dict[tuple[str, int], float]:
    """Value of every point of the curves that a run of MLflow holds, by name and step."""
    return {
        (name, metric.step): metric.value
        for name in run.data.metrics
        if name not in CELL_METRICS
        for metric in client.get_metric_history(run.info.run_id, name)
    }
