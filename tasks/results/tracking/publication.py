"""Updates the tracking store to the state of the reports: one run for each cell.

An incomplete run is completed, and a complete run is not changed. So publishing again writes nothing, and fills an
empty store. MLflow can neither change a parameter nor delete a point of a curve. If a run of the same key contradicts
the reports (its training was repeated with other code), it is retired and a new run replaces it.
"""

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tasks.results.tracking.model_registry import ReleasedModel, register_models
from tasks.results.tracking.run_record import CURVES, RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    CELL_TAG,
    CURRENT_TAG,
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    locked_store,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

RECORD_TAG = "palimpsest.record"
"""Tag with the fingerprint of the record that a run fully contains."""
MADE_UP = "samples/made_up.txt"
_CONTEXT = "mlflow.data.context"
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
        run_ids = {}
        by_key: dict[str | None, Run] = {}
        by_cell: dict[str | None, list[Run]] = defaultdict(list)
        for run in store.runs():
            by_key[run.data.tags.get(KEY_TAG)] = run
            by_cell[run.data.tags.get(CELL_TAG)].append(run)
        for record in records:
            run_ids[record.key] = run_id = _publish(record, by_key.get(record.key), store, result)
            for other in by_cell[record.cell.path]:
                if other.info.run_id != run_id and other.data.tags.get(CURRENT_TAG) != "false":
                    store.client.set_tag(other.info.run_id, CURRENT_TAG, "false")
                    result["superseded"] += 1
        result["models"] = register_models(models, run_ids, store.client, settings)
    return result


def _publish(record: RunRecord, run: "Run | None", store: TrackingStore, result: Counter[str]) -> str:
    """Make or complete the run of a record; return its id."""
    tags = {**record.tags, RECORD_TAG: record.fingerprint}
    logged: dict[tuple[str, int], float] = {}
    if run is not None:
        if run.info.status == "FINISHED" and tags.items() <= run.data.tags.items():
            result["unchanged"] += 1
            return str(run.info.run_id)
        logged = {(name, 0): value for name, value in run.data.metrics.items() if name not in CURVES}
        logged |= store.curves(run, CURVES)
        if _contradicts(run, record, logged):
            store.client.set_tag(run.info.run_id, RETIRED_KEY_TAG, record.key)
            store.client.delete_tag(run.info.run_id, KEY_TAG)
            run, logged = None, {}
    result["created" if run is None else "completed"] += 1
    run = run or store.client.create_run(store.experiment_id, record.started, record.tags, record.cell.path)
    _complete(run, record, tags, store, logged)
    return str(run.info.run_id)


def _contradicts(run: "Run", record: RunRecord, logged: Mapping[tuple[str, int], float]) -> bool:
    """Whether a run contradicts the record in a way that MLflow cannot change."""
    return (
        not run.data.params.items() <= record.parameters.items()
        or not run.data.metrics.keys() <= {*record.metrics, *CURVES}
        or not _inputs(run) <= {*record.inputs}
        or any(
            not math.isclose(value, logged.get(point, value), rel_tol=_SAME_CURVE)
            for point, value in record.curve.items()
        )
    )


def _complete(
    run: "Run",
    record: RunRecord,
    tags: Mapping[str, str],
    store: TrackingStore,
    logged: Mapping[tuple[str, int], float],
) -> None:
    """Add the missing parts to a run; the tags come last, since one of them marks it as complete."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    run_id, data = run.info.run_id, run.data
    # Measured again: MLflow shows the latest point, so it must be later than the existing one.
    now = int(time.time() * 1000)
    metrics = [
        Metric(name, value, now if (name, 0) in logged else record.measured_at, 0)
        for name, value in record.metrics.items()
        if not math.isclose(logged.get((name, 0), math.nan), value, rel_tol=_SAME)
    ]
    metrics += [
        Metric(name, value, record.curve_time(step), step)
        for (name, step), value in record.curve.items()
        if (name, step) not in logged
    ]
    tracked = _inputs(run)
    datasets = [
        DatasetInput(
            Dataset(name=name, digest=digest, source_type="dvc", source=json.dumps({"path": name})),
            [InputTag(_CONTEXT, context)],
        )
        for name, digest, context in record.inputs
        if (name, digest, context) not in tracked
    ]
    if datasets:
        store.client.log_inputs(run_id, datasets=datasets)
    if record.made_up:
        store.client.log_text(run_id, record.made_up, MADE_UP)
    store.log(run_id, metrics, [Param(*item) for item in record.parameters.items() if item[0] not in data.params])
    store.client.log_batch(run_id, tags=[RunTag(*item) for item in tags.items() if item not in data.tags.items()])
    if run.info.status != "FINISHED":
        store.client.set_terminated(run_id, status="FINISHED", end_time=record.ended)


def _inputs(run: "Run") -> set[TrackedInput]:
    """The inputs in a run."""
    return {
        TrackedInput(entry.dataset.name, entry.dataset.digest, tag.value)
        for entry in (run.inputs.dataset_inputs if run.inputs else [])
        for tag in entry.tags
        if tag.key == _CONTEXT
    }
