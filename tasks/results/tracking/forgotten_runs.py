"""The runs of one corpus, taken out of an MLflow store for good: rows, files, registered models.

MLflow's own deletion marks a run, and ``mlflow gc`` leaves the names and digests of its datasets. Here the rows go from
every table, by MLflow's own table definitions, and SQLite gives back the pages that they stood on.
"""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tasks.results.tracking.tracking_store import CELL_TAG, import_client, sqlite_file

_RUNS = """
    select run_uuid, artifact_uri from runs
    where run_uuid in (select run_uuid from tags where key = ?)
      and run_uuid in (select run_uuid from tags where key = 'dataset' and value = ?)
"""


@dataclass(frozen=True, slots=True)
class TrackedCorpus:
    """What a store has of one corpus."""

    file: Path
    """The SQLite file."""
    runs: tuple[str, ...]
    """Ids, of deleted runs too."""
    folders: tuple[Path, ...]
    """Folders with the files of the runs, on this machine."""
    models: tuple[str, ...]
    """Names of registered models that have a version of these runs."""

    def __bool__(self) -> bool:
        return bool(self.runs)


def tracked_corpus(uri: str, dataset: str) -> TrackedCorpus | None:
    """What a store has of a corpus; ``None`` where the store is no SQLite file, or none that is there."""
    if not uri.startswith("sqlite:///") or not (file := sqlite_file(uri)).exists():
        return None
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
        runs = store.execute(_RUNS, (CELL_TAG, dataset)).fetchall()
        versions = store.execute("select name, run_id from model_versions").fetchall()
    ids = {run for run, _ in runs}
    folders = [folder for _, place in runs if (folder := _folder(place, file)) is not None]
    names = {name for name, run in versions if run in ids}
    return TrackedCorpus(file, tuple(sorted(ids)), tuple(folders), tuple(sorted(names)))


def forget_runs(tracked: TrackedCorpus) -> None:
    """Take out what ``tracked_corpus`` has found. No run may be writing."""
    client = import_client()(tracking_uri=f"sqlite:///{tracked.file}")
    from mlflow.store.tracking.dbmodels import models
    from sqlalchemy import delete, select

    for name in tracked.models:
        client.delete_registered_model(name)
    store = client._tracking_client.store
    with store.ManagedSessionMaker(read_only=False) as session:
        inputs = models.SqlInput
        of_runs = inputs.destination_id.in_(tracked.runs)
        tags = models.SqlInputTag
        session.execute(delete(tags).where(tags.input_uuid.in_(select(inputs.input_uuid).where(of_runs))))
        session.execute(delete(inputs).where(of_runs))
        for table in reversed(models.Base.metadata.sorted_tables):
            if "run_uuid" in table.c:
                session.execute(delete(table).where(table.c.run_uuid.in_(tracked.runs)))
        sets = models.SqlDataset
        session.execute(delete(sets).where(sets.dataset_uuid.not_in(select(inputs.source_id))))
    store.engine.dispose()
    for folder in tracked.folders:
        shutil.rmtree(folder, ignore_errors=True)
    with closing(sqlite3.connect(tracked.file)) as connection:
        connection.execute("vacuum")
        connection.execute("pragma wal_checkpoint(truncate)")


def _folder(artifact_uri: str, file: Path) -> Path | None:
    """The folder of a run, which holds ``artifacts``; a server keeps it where a client without one would."""
    parts = urlsplit(artifact_uri)
    if parts.scheme in ("", "file"):
        folder = Path(unquote(parts.path))
    elif parts.scheme == "mlflow-artifacts":
        folder = file.absolute().parent / "mlruns" / unquote(parts.path).lstrip("/")
    else:
        return None
    return folder.parent if folder.name == "artifacts" else folder
