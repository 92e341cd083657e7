"""The runs of the experiment as MLflow holds them."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tasks.records.cell import Cell
from tasks.results.summary.summary_file import run_address
from tasks.results.tracking.forgetting_records import GROUP
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    CURRENT_TAG,
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    check_exists,
    import_client,
    shown_uri,
    tracking_uri,
    unreachable_store,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


@dataclass(frozen=True)
class TrackedRun:
    """One run: a cell in one of its states."""

    run_id: str
    experiment_id: str
    cell: Cell
    key: str
    """``chat/allow_list/minilm-top_k-1#4da7c3ffee4e``; the hash tells states of one cell apart."""
    current: bool
    """Whether its numbers are those of the reports, as ``palimpsest publish`` last saw them."""
    status: str
    """``RUNNING``, ``FINISHED``, ``FAILED`` or ``KILLED``."""
    started: int
    """Milliseconds since 1970."""
    ended: int | None
    metrics: Mapping[str, float]
    """The last value of each, those of curves among them."""
    parameters: Mapping[str, str]
    tags: Mapping[str, str]

    @property
    def measured(self) -> bool:
        """Whether its model was evaluated."""
        return any(name in self.metrics for name in ("perplexity", "wer"))

    @property
    def label(self) -> str:
        """The cell, and the hash where the numbers are of an earlier state."""
        return self.cell.path if self.current else self.key


Curve = list[tuple[int, float]]
"""Steps and values, in the order of steps."""


def read_runs(settings: TrackingSettings) -> list[TrackedRun]:
    """All runs of cells, in the order in which they were started; ways to forget are no cells.

    Raises ``ResourceError`` where there is no store yet or it does not answer.
    """
    store = _open(settings)
    if store is None:
        return []
    try:
        found = [_tracked(run) for run in store.runs()]
    except Exception as error:
        raise unreachable_store(store.uri, error) from None
    return [run for run in found if run is not None]


def read_curve(settings: TrackingSettings, run_id: str, name: str) -> Curve:
    """One training curve of a run; empty where it has none.

    Raises ``ResourceError`` where the store does not answer.
    """
    store = _open(settings)
    if store is None:
        return []
    try:
        points = store.client.get_metric_history(run_id, name)
    except Exception as error:
        raise unreachable_store(store.uri, error) from None
    return sorted({point.step: point.value for point in points if math.isfinite(point.value)}.items())


def run_page(settings: TrackingSettings, run: TrackedRun) -> str | None:
    """Address of a run in MLflow's own interface; ``None`` where the store is read without a server."""
    uri = tracking_uri(settings)
    if not uri.startswith(("http://", "https://")):
        return None
    return run_address(shown_uri(uri), run.experiment_id, run.run_id)


def _tracked(run: "Run") -> TrackedRun | None:
    tags = run.data.tags
    key = tags.get(KEY_TAG) or tags.get(RETIRED_KEY_TAG)
    if not key or tags.get("group") == GROUP:
        return None
    seed = tags.get("seed")
    return TrackedRun(
        run_id=run.info.run_id,
        experiment_id=run.info.experiment_id,
        cell=Cell(
            dataset=tags["dataset"],
            technique=tags.get("technique"),
            method=tags["method"],
            filler=tags.get("filler"),
            seed=int(seed) if seed is not None else None,
        ),
        key=key,
        current=tags.get(CURRENT_TAG) == "true",
        status=run.info.status,
        started=run.info.start_time,
        ended=run.info.end_time,
        metrics={name: value for name, value in run.data.metrics.items() if math.isfinite(value)},
        parameters=dict(run.data.params),
        tags=dict(tags),
    )


def _open(settings: TrackingSettings) -> TrackingStore | None:
    """The store for reading: neither it nor the experiment is made, and nobody else has to wait for us."""
    check_exists(settings)
    uri = tracking_uri(settings)
    try:
        client = _client(uri)
        experiment = client.get_experiment_by_name(settings.experiment)
    except Exception as error:
        raise unreachable_store(uri, error) from None
    if experiment is None or experiment.lifecycle_stage != "active":
        return None
    return TrackingStore(client, experiment.experiment_id, uri)


@lru_cache(maxsize=4)
def _client(uri: str) -> "MlflowClient":
    # Somebody waits for the page.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    return import_client()(tracking_uri=uri)
