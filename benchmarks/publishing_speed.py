"""Publishing 1,000 runs into an MLflow store of SQLite, against MLflow's fluent interface.

Every run has what a cell of an experiment has: 63 metrics, a curve of 52 points, 35 parameters, 12 tags and 6 inputs.
The peer logs a fiftieth of them as MLflow's documentation does, ``mlflow.start_run`` and the ``log_…`` functions; the
numbers, parameters and inputs that both leave in the store are compared before a time is reported.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.turns import row
from tasks.records.cell import Cell
from tasks.results.tracking import publication
from tasks.results.tracking.curve import numbers
from tasks.results.tracking.run_record import RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import cell_tags, locked_store

RUNS, PEER_RUNS, LIMIT_SECONDS, AGAIN_LIMIT_SECONDS = 1000, 20, 180.0, 30.0


def run() -> list[dict[str, Any]]:
    """Seconds of wall time: all runs made, and all runs found unchanged."""
    records = [record(number) for number in range(RUNS)]
    with tempfile.TemporaryDirectory(prefix="palimpsest publishing ") as folder:
        ours, few, peer = (TrackingSettings(uri=f"sqlite:///{folder}/{name}.db") for name in ("ours", "few", "peer"))
        for settings in (ours, few, peer):
            # The tables of a new store, which take MLflow seconds, are no cost of publishing.
            with locked_store(settings):
                pass
        publication.publish(records[:PEER_RUNS], few)
        made = seconds(lambda: publication.publish(records, ours))
        again = seconds(lambda: publication.publish(records, ours))
        # Last, since it writes the store's address into the environment.
        fluent = seconds(lambda: log_fluently(records[:PEER_RUNS], peer)) * RUNS / PEER_RUNS
        del os.environ["MLFLOW_TRACKING_URI"]
        if contents(few) != contents(peer):
            raise RuntimeError("the two ways of publishing leave different numbers, parameters or inputs")
    return [
        row(f"publish {RUNS} runs", made, fluent, "s", fluent / made, f"< {LIMIT_SECONDS:.0f} s", made < LIMIT_SECONDS),
        row(
            f"publish {RUNS} runs again",
            again,
            None,
            "s",
            None,
            f"< {AGAIN_LIMIT_SECONDS:.0f} s",
            again < AGAIN_LIMIT_SECONDS,
        ),
    ]


def log_fluently(records: Sequence[RunRecord], settings: TrackingSettings) -> None:
    """The same runs by MLflow's fluent interface."""
    import mlflow
    from mlflow.data.http_dataset_source import HTTPDatasetSource
    from mlflow.data.meta_dataset import MetaDataset

    mlflow.set_tracking_uri(settings.uri)
    mlflow.set_experiment(settings.experiment)
    for entry in records:
        with mlflow.start_run(run_name=entry.cell.path):
            mlflow.set_tags(entry.tags)
            mlflow.log_params(entry.parameters)
            mlflow.log_metrics(entry.metrics, step=0)
            for (name, step), value in entry.curve.items():
                mlflow.log_metric(name, value, step=step)
            for data in entry.inputs:
                source = HTTPDatasetSource(f"http://127.0.0.1/{data.name}")
                # MLflow calls its profile abstract, and makes such data sets itself.
                named = MetaDataset(source, name=data.name, digest=data.digest)  # type: ignore[abstract]
                mlflow.log_input(named, context=data.context)


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


def contents(settings: TrackingSettings) -> list[tuple[Any, ...]]:
    """The numbers, parameters and inputs of a store, by the names of their runs."""
    with locked_store(settings) as store:
        return sorted(
            (
                run.info.run_name,
                sorted(run.data.params.items()),
                sorted(run.data.metrics.items()),
                sorted(
                    (point.key, point.step, point.value)
                    for name in run.data.metrics
                    for point in store.client.get_metric_history(run.info.run_id, name)
                ),
                sorted(
                    (entry.dataset.name, entry.dataset.digest, sorted((tag.key, tag.value) for tag in entry.tags))
                    for entry in (run.inputs.dataset_inputs if run.inputs else [])
                ),
            )
            for run in store.runs()
        )


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
