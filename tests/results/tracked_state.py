"""Everything that an MLflow store of SQLite holds, read past MLflow itself."""

import sqlite3
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def select(folder: Path, query: str, *values: str) -> list[tuple]:
    """The rows of a query."""
    with sqlite3.connect(folder / "mlflow.db") as store:
        return store.execute(query, values).fetchall()


def tables(folder: Path, *names: str) -> dict[str, list[tuple]]:
    """All rows of some tables (of all that publishing writes, without ``names``)."""
    names = names or ("runs", "metrics", "latest_metrics", "params", "tags", "datasets", "inputs", "input_tags")
    return {name: sorted(select(folder, f"select * from {name}"), key=repr) for name in names}


def runs(folder: Path, tag: str = "palimpsest.key") -> dict[str, str]:
    """Run id of each value of a tag."""
    return dict(select(folder, "select value, run_uuid from tags where key = ?", tag))


def tags(folder: Path, run_id: str) -> dict[str, str]:
    return dict(select(folder, "select key, value from tags where run_uuid = ?", run_id))


def parameters(folder: Path, run_id: str) -> dict[str, str]:
    return dict(select(folder, "select key, value from params where run_uuid = ?", run_id))


def metric(folder: Path, run_id: str, name: str) -> list[tuple[int, float]]:
    """Step and value of every point that was ever logged, in order of step and time."""
    query = "select step, value from metrics where run_uuid = ? and key = ? order by step, timestamp"
    return [(int(step), value) for step, value in select(folder, query, run_id, name)]


def count_runs(folder: Path) -> int:
    return len(select(folder, "select run_uuid from runs"))


def artifacts(folder: Path, run_id: str) -> Path:
    """Folder of a run's files."""
    ((uri,),) = select(folder, "select artifact_uri from runs where run_uuid = ?", run_id)
    return Path(url2pathname(urlsplit(uri).path))
