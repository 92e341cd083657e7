"""Everything that an MLflow store of SQLite holds, read past MLflow itself."""

import sqlite3
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def tables(folder: Path, *names: str) -> dict[str, list[tuple]]:
    """All rows of some tables (of all that publishing writes, without ``names``)."""
    names = names or ("runs", "metrics", "latest_metrics", "params", "tags", "datasets", "inputs", "input_tags")
    with sqlite3.connect(folder / "mlflow.db") as store:
        return {name: sorted(store.execute(f"select * from {name}").fetchall(), key=repr) for name in names}


def runs(folder: Path, tag: str = "palimpsest.key") -> dict[str, str]:
    """Run id of each value of a tag."""
    with sqlite3.connect(folder / "mlflow.db") as store:
        return dict(store.execute("select value, run_uuid from tags where key = ?", (tag,)).fetchall())


def tags(folder: Path, run_id: str) -> dict[str, str]:
    with sqlite3.connect(folder / "mlflow.db") as store:
        return dict(store.execute("select key, value from tags where run_uuid = ?", (run_id,)).fetchall())


def parameters(folder: Path, run_id: str) -> dict[str, str]:
    with sqlite3.connect(folder / "mlflow.db") as store:
        return dict(store.execute("select key, value from params where run_uuid = ?", (run_id,)).fetchall())


def metric(folder: Path, run_id: str, name: str) -> list[tuple[int, float]]:
    """Step and value of every point that was ever logged, in order of step and time."""
    with sqlite3.connect(folder / "mlflow.db") as store:
        rows = store.execute(
            "select step, value from metrics where run_uuid = ? and key = ? order by step, timestamp", (run_id, name)
        )
        return [(int(step), value) for step, value in rows.fetchall()]


def count_runs(folder: Path) -> int:
    with sqlite3.connect(folder / "mlflow.db") as store:
        return store.execute("select count(*) from runs").fetchone()[0]


def artifacts(folder: Path, run_id: str) -> Path:
    """Folder of a run's files."""
    with sqlite3.connect(folder / "mlflow.db") as store:
        uri = store.execute("select artifact_uri from runs where run_uuid = ?", (run_id,)).fetchone()[0]
    return Path(url2pathname(urlsplit(uri).path))
