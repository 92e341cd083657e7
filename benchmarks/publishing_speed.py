"""Publishing 1,000 runs into an MLflow store of SQLite, against MLflow's own client call by call.

Every run has what a cell of an experiment has: 63 metrics, a curve of 52 points, 35 parameters, 12 tags and 6 inputs.
The peer publishes a fiftieth of them through the calls that a server's store is published by; what both leave in
the store is compared before a time is reported.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.turns import row
from tasks.records.cell import Cell
from tasks.results.tracking import publication
from tasks.results.tracking.curve import numbers
from tasks.results.tracking.run_record import RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import cell_tags, locked_store

RUNS, PEER_RUNS, LIMIT_SECONDS = 1000, 20, 30.0


def run() -> list[dict[str, Any]]:
    """Seconds of wall time: all runs made, and all runs found unchanged."""
    records = [record(number) for number in range(RUNS)]
    with tempfile.TemporaryDirectory(prefix="palimpsest publishing ") as folder:
        ours, peer = (TrackingSettings(uri=f"sqlite:///{folder}/{name}.db") for name in ("ours", "peer"))
        for settings in (ours, peer):
            # The tables of a new store, which take MLflow seconds, are no cost of publishing.
            with locked_store(settings):
                pass
        check_same(Path(folder), records[:2])
        made = seconds(lambda: publication.publish(records, ours))
        with patch.object(publication, "can_write", return_value=False):
            one_by_one = seconds(lambda: publication.publish(records[:PEER_RUNS], peer)) * RUNS / PEER_RUNS
        again = seconds(lambda: publication.publish(records, ours))
    target = f"< {LIMIT_SECONDS:.0f} s"
    return [
        row(f"publish {RUNS} runs", made, one_by_one, "s", one_by_one / made, target, made < LIMIT_SECONDS),
        row(f"publish {RUNS} runs again", again, None, "s", None, target, again < LIMIT_SECONDS),
    ]


def record(number: int) -> RunRecord:
    cell = Cell("chat", "allow_list", "top_k", "minilm", number)
    key = f"{cell.path}#{number:012x}"
    return RunRecord(
        cell=cell,
        key=key,
        tags={**cell_tags(cell, key), "dvc_stage": "evaluate", "commit": "0" * 40, "palimpsest.current": "true"},
        parameters={f"adapt.setting_{each}": str(each) for each in range(35)},
        metrics={name + end: float(number) for name in numbers()[:21] for end in ("", "_low", "_high")},
        measured_at=1_000_000,
        inputs=[TrackedInput(f"data/{each}/{number // 9}", "0123456789", "training") for each in range(6)],
        curve={(name, step * 10): 5.0 - step / 10 for name in ("train_loss", "learning_rate") for step in range(25)}
        | {("valid_loss", step): 5.0 for step in (0, 250)},
        started=1_000,
        ended=20_000,
    )


def check_same(folder: Path, records: list[RunRecord]) -> None:
    """Raise where the two ways leave different stores (ids aside)."""
    left = []
    for name in ("by us", "by calls"):
        settings = TrackingSettings(uri=f"sqlite:///{folder}/{name}.db")
        with locked_store(settings):
            pass
        with patch.object(publication, "can_write", return_value=name == "by us"):
            publication.publish(records, settings)
        left.append(contents(folder / f"{name}.db"))
    if left[0] != left[1]:
        raise RuntimeError("the two ways of publishing leave different stores")


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What a store holds, without ids."""
    questions = {
        "runs": "select name, status, start_time, end_time, user_id, source_type, lifecycle_stage from runs",
        "tags": "select r.name, t.key, t.value from tags t join runs r using (run_uuid)",
        "params": "select r.name, t.key, t.value from params t join runs r using (run_uuid)",
        "metrics": "select r.name, t.key, t.value, t.timestamp, t.step, t.is_nan from metrics t join runs r "
        "using (run_uuid)",
        "latest": "select r.name, t.key, t.value, t.timestamp, t.step, t.is_nan from latest_metrics t join runs r "
        "using (run_uuid)",
        "inputs": "select r.name, d.name, d.digest, d.dataset_source_type, d.dataset_source, t.name, t.value "
        "from inputs i join runs r on i.destination_id = r.run_uuid join datasets d on i.source_id = d.dataset_uuid "
        "join input_tags t using (input_uuid)",
    }
    with sqlite3.connect(path) as store:
        return {name: sorted(store.execute(question).fetchall(), key=repr) for name, question in questions.items()}


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
