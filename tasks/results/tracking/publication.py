"""Make the tracking store say what the reports say: one run per cell, whatever the store held before.

Publishing is a comparison: what a run lacks is added, what it has is left alone, so publishing again writes nothing,
and an empty store is filled as a full one is completed. MLflow can neither change a parameter nor take back a point
of a curve. Where a run of the same key says something that the reports no longer say (its training was repeated with
other code), it is retired and a new run takes its place.
"""

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tasks.results.summary.summary_file import offer_view
from tasks.results.tracking.curve import cell_metrics, logged_curves
from tasks.results.tracking.model_registry import ReleasedModel, register_models
from tasks.results.tracking.run_artifacts import ARTIFACTS_TAG, EARLIER_TAG, send
from tasks.results.tracking.run_record import RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    CELL_TAG,
    CURRENT_TAG,
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    locked_store,
    shown_uri,
    tracking_uri,
    unreachable_store,
)

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

_METRICS, _PARAMETERS, _TAGS = 800, 100, 100
"""How many go into one call: MLflow takes 100 parameters, 100 tags, and 1,000 of all together."""
_CALLS_AT_ONCE, _TRIES = 8, 5
_SAME = 1e-9
_SAME_CURVE = 1e-3
"""Relative difference of two points of a curve that rounding in a report can make."""


@dataclass
class Publication:
    """What publishing did."""

    uri: str
    """Address of the store, without a password."""
    created: int = 0
    """Runs made."""
    completed: int = 0
    """Runs that were there, to which something was added."""
    unchanged: int = 0
    """Runs that said everything already."""
    superseded: int = 0
    """Runs of earlier states that are marked as such now and were not before."""
    models: int = 0
    """Language models that were copied."""
    of_earlier_versions: int = 0
    """Runs of versions of palimpsest that sent lines of filled text and hashes without a key."""
    run_ids: dict[str, str] = field(default_factory=dict, repr=False)
    """Run id of each key."""


def publish(
    records: Sequence[RunRecord], settings: TrackingSettings, models: Sequence[ReleasedModel] = ()
) -> Publication:
    """Bring the store to the state of the records, holding its lock; ``models`` are registered.

    Raises ``ResourceError`` where the store cannot be used.
    """
    uri = tracking_uri(settings)
    result = Publication(shown_uri(uri))
    with locked_store(settings) as store:
        from mlflow.exceptions import MlflowException

        try:
            offer_view(store.client, store.experiment_id)
            _publish(records, store, result)
            result.models = register_models(models, result.run_ids, store, settings)
        except MlflowException as error:
            raise unreachable_store(uri, error) from error
    return result


def _publish(records: Sequence[RunRecord], store: TrackingStore, result: Publication) -> None:
    by_key: dict[str | None, Run] = {}
    by_cell: dict[str | None, list[Run]] = defaultdict(list)
    for each in store.runs():
        result.of_earlier_versions += EARLIER_TAG in each.data.tags
        by_key.setdefault(each.data.tags.get(KEY_TAG), each)
        by_cell[each.data.tags.get(CELL_TAG)].append(each)
    logged = logged_curves(store.client, [by_key[record.key] for record in records if record.key in by_key])
    run_ids: dict[str, str] = {}
    new: list[RunRecord] = []
    for record in records:
        run = by_key.get(record.key)
        if run is not None and _contradicts(run, record, logged[run.info.run_id]):
            store.client.set_tag(run.info.run_id, RETIRED_KEY_TAG, record.key)
            store.client.delete_tag(run.info.run_id, KEY_TAG)
            run = None
        if run is None:
            new.append(record)
            continue
        run_ids[record.key] = run.info.run_id
        if _complete(run, record, store, logged[run.info.run_id]):
            result.completed += 1
        else:
            result.unchanged += 1
    run_ids.update(_make(new, store))
    result.created = len(new)
    for record in records:
        for other in by_cell[record.cell.path]:
            if other.info.run_id != run_ids[record.key] and other.data.tags.get(CURRENT_TAG) != "false":
                store.client.set_tag(other.info.run_id, CURRENT_TAG, "false")
                result.superseded += 1
    result.run_ids = run_ids


def _make(records: Sequence[RunRecord], store: TrackingStore) -> dict[str, str]:
    """Make runs with all that they say; run id of each key."""
    if store.is_locked:
        return {record.key: _make_run(record, store) for record in records}
    if not records:
        return {}
    # Each call waits for the server and its database, which work on several at once.
    with ThreadPoolExecutor(_CALLS_AT_ONCE) as pool:
        list(pool.map(lambda record: _make_run(record, store), records))
    return store.take_back_doubles({record.key for record in records})


def _make_run(record: RunRecord, store: TrackingStore) -> str:
    """Make the run of a record, or complete the one that another publisher makes at the same time; its id."""
    from mlflow.exceptions import MlflowException

    tags = {name: value for name, value in record.tags.items() if name != ARTIFACTS_TAG}
    run = store.make_run(record.key, tags, record.started)
    if store.is_locked:
        _complete(run, record, store, {})
        return str(run.info.run_id)
    tries_left = _TRIES - 1
    while True:
        try:
            _complete(run, record, store, logged_curves(store.client, [run])[run.info.run_id])
            return str(run.info.run_id)
        except MlflowException:
            # The other one has written the same meanwhile, or taken its run back.
            found = store.run_that_stays(record.key)
            if found is None or tries_left == 0:
                raise
            run, tries_left = found, tries_left - 1


def _contradicts(run: "Run", record: RunRecord, logged: Mapping[tuple[str, int], float]) -> bool:
    """Whether a run holds something that the record does not and that cannot be changed."""
    parameters = run.data.params
    if any(record.parameters.get(name) != value for name, value in parameters.items()):
        return True
    if any(name in cell_metrics() and name not in record.metrics for name in run.data.metrics):
        return True
    if not _tracked(run) <= {(entry.name, entry.digest, entry.context) for entry in record.inputs}:
        return True
    return any(
        point in record.curve and not math.isclose(value, record.curve[point], rel_tol=_SAME_CURVE)
        for point, value in logged.items()
    )


def _complete(run: "Run", record: RunRecord, store: TrackingStore, logged: Mapping[tuple[str, int], float]) -> bool:
    """Add to a run what it lacks; returns whether there was anything."""
    from mlflow.entities import Metric, Param, RunTag

    run_id, data = run.info.run_id, run.data
    metrics = []
    for name, value in record.metrics.items():
        if name not in data.metrics:
            metrics.append(Metric(name, value, record.measured_at, 0))
        elif not math.isclose(data.metrics[name], value, rel_tol=_SAME):
            # Measured again: MLflow shows the latest point, so it has to be later than the one that is there.
            metrics.append(Metric(name, value, int(time.time() * 1000), 0))
    metrics += [
        Metric(name, value, record.curve_time(step), step)
        for (name, step), value in record.curve.items()
        if (name, step) not in logged
    ]
    parameters = [Param(name, value) for name, value in record.parameters.items() if name not in data.params]
    tags = [RunTag(name, value) for name, value in record.tags.items() if data.tags.get(name) != value]
    if data.tags.get(ARTIFACTS_TAG) != record.tags.get(ARTIFACTS_TAG):
        # Before the tag that says that they are there.
        send(run.info.artifact_uri, store.uri, record.files, replace=ARTIFACTS_TAG in data.tags)
    inputs = [entry for entry in record.inputs if (entry.name, entry.digest, entry.context) not in _tracked(run)]
    # As few transactions as MLflow's limits allow: each one waits for the disk.
    for metrics_part, parameters_part, tags_part in zip_longest(
        batched(metrics, _METRICS), batched(parameters, _PARAMETERS), batched(tags, _TAGS), fillvalue=()
    ):
        store.client.log_batch(run_id, metrics=metrics_part, params=parameters_part, tags=tags_part)
    if inputs:
        store.client.log_inputs(run_id, datasets=list(_datasets(inputs)))
    ended = run.info.status == "FINISHED"
    if not ended:
        store.client.set_terminated(run_id, status="FINISHED", end_time=record.ended)
    return bool(metrics or parameters or tags or inputs or not ended)


def batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in order, ``size`` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _tracked(run: "Run") -> set[tuple[str, str, str]]:
    """Name, digest and context of the datasets that a run holds."""
    entries = run.inputs.dataset_inputs if run.inputs else []
    return {
        (entry.dataset.name, entry.dataset.digest, tag.value)
        for entry in entries
        for tag in entry.tags
        if tag.key == "mlflow.data.context"
    }


def _datasets(inputs: Iterable[TrackedInput]) -> "Iterable[DatasetInput]":
    from mlflow.entities import Dataset, DatasetInput, InputTag

    for entry in inputs:
        yield DatasetInput(
            dataset=Dataset(
                name=entry.name,
                digest=entry.digest,
                source_type="dvc",
                source=json.dumps({"path": entry.name}),
            ),
            tags=[InputTag(key="mlflow.data.context", value=entry.context)],
        )
