"""The MLflow store as palimpsest uses it: one experiment, in which runs are found by their key.

Finding or making a run happens under the lock of a file, so parallel stages and publishers of a machine never make two
runs of one key. A store that machines share is looked at again after each run made: of two runs of one key the one
whose id comes first stays.
"""

import gc
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tasks.errors import ResourceError
from tasks.records.cell import Cell
from tasks.records.run_key import cell_path_of
from tasks.results.titles import group_of
from tasks.results.tracking.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

KEY_TAG = "palimpsest.key"
CELL_TAG = "palimpsest.cell"
CURRENT_TAG = "palimpsest.current"
RETIRED_KEY_TAG = "palimpsest.retired_key"
"""Key that a run had before another run of the same key, with other numbers, took its place."""

_LOCK_SECONDS = 120
_PAGE = 1000
_SQLITE = "sqlite:///"


def tracking_uri(settings: TrackingSettings) -> str:
    """The store's address: ``MLFLOW_TRACKING_URI`` where it is set, else the settings' ``uri``."""
    return os.environ.get("MLFLOW_TRACKING_URI") or settings.uri


def shown_uri(uri: str) -> str:
    """The address without user name and password."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def cell_tags(cell: Cell, key: str) -> dict[str, str]:
    """The tags that say what a run belongs to; dimensions that do not apply have none.

    ``condition`` is the cell without its seed, so grouping by it gathers the seeds.
    """
    dimensions = {name: str(value) for name, value in cell.as_dict().items() if value is not None}
    condition = cell.path if cell.seed is None else cell.path.removesuffix(f"-{cell.seed}")
    return {
        **dimensions,
        "group": group_of(cell.technique, str(cell.method), cell.filler),
        "condition": condition,
        KEY_TAG: key,
        CELL_TAG: cell.path,
    }


class TrackingStore:
    """An open MLflow store with its experiment; made by ``locked_store``."""

    def __init__(self, client: "MlflowClient", experiment_id: str, uri: str) -> None:
        self.client = client
        self.experiment_id = experiment_id
        self.uri = uri

    @property
    def is_locked(self) -> bool:
        """Whether its lock keeps every other publisher away: a SQLite file is one machine's."""
        return self.uri.startswith(_SQLITE)

    def runs(self, condition: str = "") -> "list[Run]":
        """All runs of the experiment that are not deleted, with metrics, parameters, tags and inputs."""
        found: list[Run] = []
        token = None
        while True:
            page = self.client.search_runs(
                [self.experiment_id], condition, max_results=_PAGE, order_by=["start_time ASC"], page_token=token
            )
            found += page
            token = page.token
            if not token:
                return found

    def runs_of_key(self, key: str) -> "list[Run]":
        """Runs with this key: none or one, for a moment two on a server that machines share."""
        return self.runs(f"tags.`{KEY_TAG}` = '{key}'")

    def make_run(self, key: str, tags: Mapping[str, str], start_time: int | None = None) -> "Run":
        """Make the run of a key that has none; call it with the lock held. ``start_time`` in milliseconds."""
        run = self.client.create_run(
            self.experiment_id, start_time=start_time, tags=dict(tags), run_name=cell_path_of(key)
        )
        if self.is_locked:
            return run
        stays = self.run_that_stays(key)
        if stays is None or stays.info.run_id == run.info.run_id:
            return run
        self.client.delete_run(run.info.run_id)
        return stays

    def run_that_stays(self, key: str) -> "Run | None":
        """The run of a key; of several, the one that every publisher keeps."""
        return min(self.runs_of_key(key), key=lambda run: str(run.info.run_id), default=None)

    def take_back_doubles(self, keys: Collection[str]) -> dict[str, str]:
        """Delete what several publishers at once have made twice; run id of each key.

        Each publisher looks when it has made all of its runs, so the last one sees all of them.
        """
        from mlflow.exceptions import MlflowException

        stays: dict[str, str] = {}
        for run in sorted(self.runs(), key=lambda run: str(run.info.run_id)):
            key = run.data.tags.get(KEY_TAG)
            if key is not None and key in keys and stays.setdefault(key, run.info.run_id) != run.info.run_id:
                # The other one may have done it by now.
                with suppress(MlflowException):
                    self.client.delete_run(run.info.run_id)
        return stays

    def find_or_make(self, cell: Cell, key: str) -> "tuple[Run, bool]":
        """The run of a key and whether it was made now; call it with the lock held."""
        runs = self.runs_of_key(key)
        return (runs[0], False) if runs else (self.make_run(key, cell_tags(cell, key)), True)


@contextmanager
def locked_store(settings: TrackingSettings) -> Iterator[TrackingStore]:
    """Open the store and its experiment, making both where they are not there yet, and hold the lock of this machine.

    Raises ``ResourceError`` where the store cannot be reached, with its address and the remedy, or where another
    process keeps the lock too long.
    """
    # Before the lock is taken: importing takes a second, and processes that wait for each other would add it up.
    import_client()
    with _store_lock(settings):
        yield _open_store(settings)


def _open_store(settings: TrackingSettings) -> TrackingStore:
    uri = tracking_uri(settings)
    try:
        with _without_garbage_collection():
            client = import_client()(tracking_uri=uri)
        experiment = client.get_experiment_by_name(settings.experiment)
        if experiment is None:
            experiment = _make_experiment(client, settings.experiment, uri)
        if experiment.lifecycle_stage != "active":
            raise ResourceError(
                f"the MLflow experiment {settings.experiment!r} in {shown_uri(uri)!r} was deleted; restore it with "
                f"'mlflow experiments restore --experiment-id {experiment.experiment_id}', or name another in "
                "tracking.experiment"
            )
        return TrackingStore(client, experiment.experiment_id, uri)
    except ResourceError:
        raise
    except Exception as error:
        raise unreachable_store(uri, error) from error


def _make_experiment(client: "MlflowClient", name: str, uri: str) -> "Experiment":
    from mlflow.exceptions import MlflowException

    try:
        client.create_experiment(name, artifact_location=_artifact_location(uri))
    except MlflowException:
        # Another machine may have made it at the same moment.
        if client.get_experiment_by_name(name) is None:
            raise
    made = client.get_experiment_by_name(name)
    assert made is not None  # by this process or the other
    return made


def _artifact_location(uri: str) -> str | None:
    """Where a new experiment keeps its files: beside a SQLite file (MLflow would take the folder in which the first
    process happens to run); of any other store, where its server says."""
    if not uri.startswith(_SQLITE):
        return None
    return (sqlite_file(uri).absolute().parent / "mlruns").as_uri()


def unreachable_store(uri: str, error: Exception) -> ResourceError:
    """The error for a store that does not answer, is locked, is no store or was made by another version of MLflow."""
    if "schema" in str(error):
        return ResourceError(
            f"the MLflow store {shown_uri(uri)!r} was made by another version of MLflow; back it up and bring it up to "
            "date with 'mlflow db upgrade', or name another store in tracking.uri"
        )
    return ResourceError(
        f"the MLflow store {shown_uri(uri)!r} cannot be used ({type(error).__name__}); start its server, or mend "
        "tracking.uri in params.yaml or MLFLOW_TRACKING_URI"
    )


def import_client() -> "type[MlflowClient]":
    """MLflow's client class."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    # The address of each run, printed when it ends, is no result of a command.
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    # A server that does not answer must not hold up a training run for minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    with _without_garbage_collection():
        from mlflow.tracking import MlflowClient

        return MlflowClient


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off for a moment.

    Importing MLflow and opening a store makes half a million objects, and the collector would walk over them and over
    everything that PyTorch has loaded again and again: without it, the same takes 40 % less time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _store_lock(settings: TrackingSettings) -> Iterator[None]:
    from filelock import FileLock, Timeout

    path = _lock_path(tracking_uri(settings))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=_LOCK_SECONDS)
        lock.acquire()
    except Timeout:
        raise ResourceError(
            f"another process has held the lock {str(path)!r} for {_LOCK_SECONDS} seconds; wait for it, or end it"
        ) from None
    try:
        yield
    finally:
        lock.release()


def check_exists(settings: TrackingSettings) -> None:
    """``ResourceError`` where the store is a SQLite file that is not there: reading must not make it."""
    uri = tracking_uri(settings)
    if uri.startswith(_SQLITE) and not sqlite_file(uri).exists():
        raise ResourceError(f"there is no MLflow store {uri!r} yet; 'palimpsest publish' makes it from the reports")


def sqlite_file(uri: str) -> Path:
    """The file behind an address that begins with ``sqlite:///``."""
    return Path(uri.removeprefix(_SQLITE).partition("?")[0])


def _lock_path(uri: str) -> Path:
    """Beside a SQLite file; for other stores in the project's folder for state."""
    if uri.startswith(_SQLITE):
        file = sqlite_file(uri)
        return file.with_name(f"{file.name}.lock")
    return Path(".palimpsest") / "tracking.lock"
