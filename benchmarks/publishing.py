"""Publishing 1,000 runs into an MLflow store of SQLite, against ``MlflowClient`` with one batch a run.

Every run has the contents of a cell of an experiment: 63 metrics, a curve of 52 points, 35 parameters, 12 tags and 6
inputs. Ours also looks first for earlier runs, and writes so that an interrupted run can be completed. The numbers,
parameters and inputs that both leave in the store are compared first, for fifty runs.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

from benchmarks.frame import check_same, speed, wall
from tasks.records.cell import Cell
from tasks.results.measure import MLFLOW
from tasks.results.measures import measures_of
from tasks.results.tracking.publish_command import publish
from tasks.results.tracking.run_record import RunRecord, TrackedInput
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import CELL_TAG, cell_tags, locked_store


def run(small: bool) -> list[dict[str, Any]]:
    records = [record(number) for number in range(20 if small else 1000)]
    with tempfile.TemporaryDirectory(prefix="palimpsest publishing ") as folder:
        # The tables of a new store, which take MLflow seconds, are no cost of publishing.
        ours, peer = ([new_store(Path(folder) / f"{side}{n}") for n in range(3)] for side in ("ours", "peer"))
        publish(records[:50], ours[0])
        publish_by_client(records[:50], peer[0])
        check_same(contents(ours.pop(0)), contents(peer.pop(0)), "tracking store")
        both: Any = lambda: publish(records, ours.pop()), lambda: publish_by_client(records, peer.pop())
        name = f"publishing {len(records):,} runs against MlflowClient.log_batch"
        return [speed(name, len(records), "runs/s", *both, rounds=2, clock=wall)]


def new_store(path: Path) -> TrackingSettings:
    """An empty store with its tables."""
    settings = TrackingSettings(uri=f"sqlite:///{path}.db")
    with locked_store(settings):
        return settings


def publish_by_client(records: Sequence[RunRecord], settings: TrackingSettings) -> None:
    """The same runs as MLflow's documentation says, in batches."""
    client = MlflowClient(settings.uri)
    experiment = client.get_experiment_by_name(settings.experiment)
    experiment_id = experiment.experiment_id if experiment else client.create_experiment(settings.experiment)
    for entry in records:
        run_id = client.create_run(experiment_id, entry.started, entry.tags, entry.cell.path).info.run_id
        metrics = [Metric(name, value, entry.measured_at, 0) for name, value in entry.metrics.items()]
        metrics += [Metric(name, value, entry.measured_at, step) for (name, step), value in entry.curve.items()]
        parameters = [Param(name, value) for name, value in entry.parameters.items()]
        client.log_batch(run_id, metrics=metrics, params=parameters)
        datasets = ((Dataset(data.name, data.digest, "local", "{}"), data.context) for data in entry.inputs)
        inputs = [DatasetInput(data, [InputTag("mlflow.data.context", context)]) for data, context in datasets]
        client.log_inputs(run_id, datasets=inputs)
        client.set_terminated(run_id, end_time=entry.ended)


def record(number: int) -> RunRecord:
    """A made-up cell of an experiment."""
    cell = Cell("chat", "allow_list", "top_k", "minilm", number)
    key = f"{cell.path}#{number:012x}"
    names = [f"{each.name}{end}" for each in measures_of(MLFLOW)[:21] for end in ("", "_low", "_high")]
    steps = [(name, step * 10) for name in ("train_loss", "learning_rate") for step in range(25)]
    return RunRecord(
        cell=cell,
        key=key,
        tags={**cell_tags(cell, key), "dvc_stage": "evaluate", "commit": "0" * 40, "palimpsest.current": "true"},
        parameters={f"adapt.setting_{each}": str(each) for each in range(35)},
        metrics=dict.fromkeys(names, float(number)),
        measured_at=1_000_000,
        inputs=[TrackedInput(f"data/{each}/{number // 9}", "0123456789", "training") for each in range(6)],
        curve={(name, step): 5.0 - step / 100 for name, step in (*steps, ("valid_loss", 0), ("valid_loss", 250))},
        started=1_000,
        ended=20_000,
    )


def contents(settings: TrackingSettings) -> list[tuple[Any, ...]]:
    """Points of all metrics, parameters and inputs of each run of a store, in the order of cells."""
    found = []
    with locked_store(settings) as store:
        for run in sorted(store.runs(), key=lambda run: run.data.tags[CELL_TAG]):
            histories = [store.client.get_metric_history(run.info.run_id, name) for name in sorted(run.data.metrics)]
            points = [sorted((point.step, point.value) for point in history) for history in histories]
            assert run.inputs is not None
            inputs = sorted((one.dataset.name, one.dataset.digest) for one in run.inputs.dataset_inputs)
            found.append((run.data.metrics, points, run.data.params, inputs))
    return found
