"""palimpsest's access to the MLflow store: one experiment, in which runs are found by their tags.

Publishers of one checkout take turns by the lock of a file, so they never make two runs of one key.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tasks.errors import PassingError, ResourceError
from tasks.records.cell import Cell
from tasks.results.titles import group_of
from tasks.results.tracking.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, Run

KEY_TAG = "palimpsest.key"
CELL_TAG = "palimpsest.cell"
CURRENT_TAG = "palimpsest.current"

_LOCK, _LOCK_SECONDS = Path(".palimpsest", "tracking.lock"), 120
_MOST_RUNS, _METRICS, _PARAMETERS = 50_000, 1000, 100
"""Runs of an answer, metrics of a call, and parameters of a call: MLflow takes no more."""
_SQLITE = "sqlite:///"
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # A server that does not answer must not delay a training for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


def tracking_uri(settings: TrackingSettings) -> str:
    """The store's address: ``MLFLOW_TRACKING_URI`` if set, else the settings' ``uri``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or settings.uri


def shown_uri(uri: str) -> str:
    """The address without user name and password."""
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else uri


def is_missing_file(uri: str) -> bool:
    """Whether the store is a SQLite file that does not exist."""
    return uri.startswith(_SQLITE) and not _sqlite_file(uri).exists()


def _sqlite_file(uri: str) -> Path:
    return Path(uri.removeprefix(_SQLITE).partition("?")[0])


def cell_tags(cell: Cell, key: str) -> dict[str, str]:
    """The tags of a cell's run; dimensions that do not apply have none.

    ``condition`` is the cell without its seed, so grouping by it joins the seeds.
    """
    dimensions = {name: str(value) for name, value in cell.as_dict().items() if value is not None}
    condition = cell.path if cell.seed is None else cell.path.removesuffix(f"-{cell.seed}")
    group = group_of(cell.technique, str(cell.method), cell.filler)
    return {**dimensions, "group": group, "condition": condition, KEY_TAG: key, CELL_TAG: cell.path}


class TrackingStore(NamedTuple):
    """An open MLflow store with its experiment; made by ``locked_store``."""

    client: "MlflowClient"
    experiment_id: str

    def runs(self, condition: str = "") -> "list[Run]":
        """All runs of the experiment that are not deleted, with metrics, parameters, tags and inputs."""
        order = ["start_time ASC"]
        return list(self.client.search_runs([self.experiment_id], condition, max_results=_MOST_RUNS, order_by=order))

    def log(self, run_id: str, metrics: "Sequence[Metric]", parameters: "Sequence[Param]" = ()) -> None:
        """Log all metrics and parameters, in as many calls as MLflow needs."""
        for start in range(0, len(metrics), _METRICS):
            self.client.log_batch(run_id, metrics=metrics[start : start + _METRICS])
        for start in range(0, len(parameters), _PARAMETERS):
            self.client.log_batch(run_id, params=parameters[start : start + _PARAMETERS])


@contextmanager
def locked_store(settings: TrackingSettings, *, made: bool = True) -> Iterator[TrackingStore]:
    """Open the store and its experiment, and hold the lock of this checkout; they are made if missing.

    Raises ``ResourceError`` if the store cannot be used, if another process holds the lock too long, or, without
    ``made``, if the store is a SQLite file that does not exist.
    """
    uri = tracking_uri(settings)
    if not made and is_missing_file(uri):
        raise ResourceError(f"there is no MLflow store {uri!r} yet; 'palimpsest publish' makes it from the reports")
    # Before the lock is taken: otherwise waiting processes add up the seconds of the import.
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from filelock import FileLock, Timeout
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(_LOCK, timeout=_LOCK_SECONDS):
            yield _open_store(uri, settings.experiment)
    except Timeout:
        raise PassingError(
            f"another process has held the lock {str(_LOCK)!r} for {_LOCK_SECONDS} seconds; wait for it, or end it"
        ) from None
    except (MlflowException, SQLAlchemyError) as error:
        raise _unusable(uri, error) from error


def _open_store(uri: str, name: str) -> TrackingStore:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # Next to a SQLite file: MLflow would take the current folder of the first process.
        place = (_sqlite_file(uri).absolute().parent / "mlruns").as_uri() if uri.startswith(_SQLITE) else None
        return TrackingStore(client, client.create_experiment(name, place))
    if experiment.lifecycle_stage != "active":
        raise ResourceError(
            f"the MLflow experiment {name!r} in {shown_uri(uri)!r} was deleted; restore it with 'mlflow experiments "
            f"restore --experiment-id {experiment.experiment_id}', or name another in tracking.experiment"
        )
    return TrackingStore(client, experiment.experiment_id)


def _unusable(uri: str, error: Exception) -> ResourceError:
    """The error for a store that does not answer, is no store or is of another version of MLflow."""
    if "schema" in str(error):
        return ResourceError(
            f"the MLflow store {shown_uri(uri)!r} was made by another version of MLflow; back it up and bring it up to "
            "date with 'mlflow db upgrade', or name another store in tracking.uri"
        )
    return PassingError(
        f"the MLflow store {shown_uri(uri)!r} cannot be used ({type(error).__name__}); start its server, or correct "
        "tracking.uri in params.yaml or MLFLOW_TRACKING_URI"
    )
