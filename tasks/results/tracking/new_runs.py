"""New runs written into an MLflow database of SQLite or PostgreSQL, many in one transaction.

MLflow's own calls make several transactions for each run, and each waits for the disk: nine tenths of the time of
publishing. What is written here is what those calls write, by MLflow's own table definitions.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasks.results.tracking.run_artifacts import send
from tasks.results.tracking.run_record import RunRecord

_USER = "unknown"
"""What MLflow writes where no user is given."""


def can_write(client: Any) -> bool:
    """Whether the client's store is a database whose lock keeps other publishers away."""
    engine = getattr(client._tracking_client.store, "engine", None)
    return engine is not None and engine.dialect.name in ("sqlite", "postgresql")


def write_new_runs(client: Any, experiment_id: str, records: Sequence[RunRecord]) -> list[str]:
    """Write finished runs and return their ids; call it with the store's lock held and for keys that have no run."""
    from mlflow.store.tracking.dbmodels import models
    from sqlalchemy import insert

    store = client._tracking_client.store
    location = client.get_experiment(experiment_id).artifact_location
    identifiers = [uuid.uuid4().hex for _ in records]
    for run_id, record in zip(identifiers, records, strict=True):
        # Before the run, whose tag says that they are there.
        send(artifact_uri(location, run_id), client.tracking_uri, record.files, replace=False)
    with store.ManagedSessionMaker(read_only=False) as session:
        rows: dict[Any, list[dict[str, Any]]] = {
            table: []
            for table in (
                models.SqlRun,
                models.SqlTag,
                models.SqlParam,
                models.SqlMetric,
                models.SqlLatestMetric,
                models.SqlDataset,
                models.SqlInput,
                models.SqlInputTag,
            )
        }
        known = {
            (name, digest): identifier
            for identifier, name, digest in session.query(
                models.SqlDataset.dataset_uuid, models.SqlDataset.name, models.SqlDataset.digest
            ).filter(models.SqlDataset.experiment_id == int(experiment_id))
        }
        for run_id, record in zip(identifiers, records, strict=True):
            rows[models.SqlRun].append(_run(run_id, experiment_id, location, record))
            tags = {**record.tags, "mlflow.runName": record.cell.path}
            rows[models.SqlTag] += ({"run_uuid": run_id, "key": key, "value": value} for key, value in tags.items())
            rows[models.SqlParam] += (
                {"run_uuid": run_id, "key": key, "value": value} for key, value in record.parameters.items()
            )
            points = list(_points(run_id, record))
            rows[models.SqlMetric] += points
            latest = {point["key"]: point for point in sorted(points, key=lambda point: int(point["step"]))}
            rows[models.SqlLatestMetric] += latest.values()
            _add_inputs(rows, models, run_id, experiment_id, record, known)
        for table, values in rows.items():
            if values:
                session.execute(insert(table), values)
    return identifiers


def artifact_uri(location: str, run_id: str) -> str:
    """Where a run of an experiment keeps its artifacts."""
    from mlflow.utils.uri import append_to_uri_path

    return append_to_uri_path(location, run_id, "artifacts")


def _run(run_id: str, experiment_id: str, location: str, record: RunRecord) -> dict[str, Any]:
    return {
        "run_uuid": run_id,
        "name": record.cell.path,
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": _USER,
        "status": "FINISHED",
        "start_time": record.started,
        "end_time": record.ended,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": artifact_uri(location, run_id),
        "experiment_id": int(experiment_id),
    }


def _points(run_id: str, record: RunRecord) -> Iterable[dict[str, Any]]:
    values = [(name, 0, record.measured_at, value) for name, value in record.metrics.items()]
    values += [(name, step, record.curve_time(step), value) for (name, step), value in record.curve.items()]
    for name, step, at, value in values:
        yield {"run_uuid": run_id, "key": name, "value": value, "timestamp": at, "step": step, "is_nan": False}


def _add_inputs(
    rows: Mapping[Any, list[dict[str, Any]]],
    models: Any,
    run_id: str,
    experiment_id: str,
    record: RunRecord,
    known: dict[tuple[str, str], str],
) -> None:
    seen = set()
    for entry in record.inputs:
        name = (entry.name, entry.digest)
        if name in seen:
            continue
        seen.add(name)
        if name not in known:
            known[name] = uuid.uuid4().hex
            rows[models.SqlDataset].append(
                {
                    "dataset_uuid": known[name],
                    "experiment_id": int(experiment_id),
                    "name": entry.name,
                    "digest": entry.digest,
                    "dataset_source_type": "dvc",
                    "dataset_source": json.dumps({"path": entry.name}),
                }
            )
        identifier = uuid.uuid4().hex
        rows[models.SqlInput].append(
            {
                "input_uuid": identifier,
                "source_type": "DATASET",
                "source_id": known[name],
                "destination_type": "RUN",
                "destination_id": run_id,
            }
        )
        rows[models.SqlInputTag].append(
            {"input_uuid": identifier, "name": "mlflow.data.context", "value": entry.context}
        )
