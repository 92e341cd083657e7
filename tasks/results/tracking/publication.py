"""Updates the tracking store to the state of the reports: one run for each cell.

An incomplete run is completed, and a complete run is not changed. So publishing again writes nothing, and fills an
empty store. MLflow can neither change a parameter nor delete a point of a curve. If a run of the same key contradicts
the reports (its training was repeated with other code), it is retired and a new run replaces it.
"""

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tasks.results.tracking.curve import cell_metrics, logged_points
from tasks.results.tracking.model_registry import ReleasedModel, register_models
from tasks.results.tracking.run_record import RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    CELL_TAG,
    CURRENT_TAG,
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    locked_store,
    tracking_uri,
    unreachable_store,
)

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

RECORD_TAG = "palimpsest.record"
"""Tag with the fingerprint of the record that a run fully contains."""
MADE_UP = "samples/made_up.txt"
_METRICS, _PARAMETERS = 800, 100
"""Items per call: MLflow takes 100 parameters, and 1,000 of metrics, parameters and tags together."""
_SAME = 1e-9
_SAME_CURVE = 1e-3
"""Relative difference of two points of a curve that rounding in a report can cause."""


def publish(
    records: Sequence[RunRecord], settings: TrackingSettings, models: Sequence[ReleasedModel] = ()
) -> Counter[str]:
    """Update the store to the state of the records, holding its lock; ``models`` are registered.

    Returns how many runs were ``created``, ``completed``, ``unchanged`` and newly ``superseded``, and how many
    ``models`` were copied. Raises ``ResourceError`` if the store cannot be used.
    """
    result = Counter[str]()
    with locked_store(settings) as store:
        from mlflow.exceptions import MlflowException

        try:
            run_ids = _publish(records, store, result)
            result["models"] = register_models(models, run_ids, store, settings)
        except MlflowException as error:
            raise unreachable_store(tracking_uri(settings), error) from error
    return result


def _publish(records: Sequence[RunRecord], store: TrackingStore, result: Counter[str]) -> dict[str, str]:
    """Publish all records; return the run id of each key."""
    by_key: dict[str | None, Run] = {}
    by_cell: dict[str | None, list[Run]] = defaultdict(list)
    for run in store.runs():
        by_key[run.data.tags.get(KEY_TAG)] = run
        by_cell[run.data.tags.get(CELL_TAG)].append(run)
    run_ids = {}
    for record in records:
        run_ids[record.key] = run_id = _publish_one(record, by_key.get(record.key), store, result)
        for other in by_cell[record.cell.path]:
            if other.info.run_id != run_id and other.data.tags.get(CURRENT_TAG) != "false":
                store.client.set_tag(other.info.run_id, CURRENT_TAG, "false")
                result["superseded"] += 1
    return run_ids


def _publish_one(record: RunRecord, run: "Run | None", store: TrackingStore, result: Counter[str]) -> str:
    """Make or complete the run of a record; return its id."""
    tags = {**record.tags, RECORD_TAG: record.fingerprint}
    if run is not None:
        if run.info.status == "FINISHED" and tags.items() <= run.data.tags.items():
            result["unchanged"] += 1
            return str(run.info.run_id)
        logged = logged_points(store.client, run)
        if not _contradicts(run, record, logged):
            _complete(run, record, tags, store, logged)
            result["completed"] += 1
            return str(run.info.run_id)
        store.client.set_tag(run.info.run_id, RETIRED_KEY_TAG, record.key)
        store.client.delete_tag(run.info.run_id, KEY_TAG)
    made = store.make_run(record.key, record.tags, record.started)
    _complete(made, record, tags, store, {})
    result["created"] += 1
    return str(made.info.run_id)


def _contradicts(run: "Run", record: RunRecord, logged: Mapping[tuple[str, int], float]) -> bool:
    """Whether a run contradicts the record in a way that MLflow cannot change."""
    parameters = run.data.params
    if any(record.parameters.get(name) != value for name, value in parameters.items()):
        return True
    if any(name in cell_metrics() and name not in record.metrics for name in run.data.metrics):
        return True
    if not _tracked(run) <= set(record.inputs):
        return True
    return any(
        point in record.curve and not math.isclose(value, record.curve[point], rel_tol=_SAME_CURVE)
        for point, value in logged.items()
    )


def _complete(
    run: "Run",
    record: RunRecord,
    tags: Mapping[str, str],
    store: TrackingStore,
    logged: Mapping[tuple[str, int], float],
) -> None:
    """Add the missing parts to a run; the tags come last, since one of them marks it as complete."""
    from mlflow.entities import Metric, Param, RunTag

    client, run_id, data = store.client, run.info.run_id, run.data
    # Measured again: MLflow shows the latest point, so it must be later than the existing one.
    now = int(time.time() * 1000)
    metrics = [
        Metric(name, value, now if name in data.metrics else record.measured_at, 0)
        for name, value in record.metrics.items()
        if name not in data.metrics or not math.isclose(data.metrics[name], value, rel_tol=_SAME)
    ] + [
        Metric(name, value, record.curve_time(step), step)
        for (name, step), value in record.curve.items()
        if (name, step) not in logged
    ]
    parameters = [Param(name, value) for name, value in record.parameters.items() if name not in data.params]
    inputs = [entry for entry in record.inputs if entry not in _tracked(run)]
    if inputs:
        client.log_inputs(run_id, datasets=list(_datasets(inputs)))
    if record.made_up:
        client.log_text(run_id, record.made_up, MADE_UP)
    # As few transactions as MLflow's limits allow: each one waits for the disk.
    *parts, last = zip_longest(batched(metrics, _METRICS), batched(parameters, _PARAMETERS), fillvalue=())
    for metrics_part, parameters_part in parts:
        client.log_batch(run_id, metrics=metrics_part, params=parameters_part)
    changed = [RunTag(name, value) for name, value in tags.items() if data.tags.get(name) != value]
    client.log_batch(run_id, metrics=last[0], params=last[1], tags=changed)
    if run.info.status != "FINISHED":
        client.set_terminated(run_id, status="FINISHED", end_time=record.ended)


def batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in order, ``size`` at a time; one empty batch without items."""
    return (items[start : start + size] for start in range(0, max(1, len(items)), size))


def _tracked(run: "Run") -> set[TrackedInput]:
    """The datasets in a run."""
    return {
        TrackedInput(entry.dataset.name, entry.dataset.digest, tag.value)
        for entry in (run.inputs.dataset_inputs if run.inputs else [])
        for tag in entry.tags
        if tag.key == "mlflow.data.context"
    }


def _datasets(inputs: Iterable[TrackedInput]) -> "Iterable[DatasetInput]":
    from mlflow.entities import Dataset, DatasetInput, InputTag

    for entry in inputs:
        source = json.dumps({"path": entry.name})
        dataset = Dataset(name=entry.name, digest=entry.digest, source_type="dvc", source=source)
        yield DatasetInput(dataset=dataset, tags=[InputTag(key="mlflow.data.context", value=entry.context)])
