"""Publishing into a store that several machines share: PostgreSQL, directly and through MLflow's server."""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from postgres_server import PostgresServer, postgres_server
from scratch_project import until

from dashboards.services.services import free_port
from flows.stages.processes import Processes
from tasks.results.tracking.tracking_store import shown_uri

CHECKOUT = Path(__file__).parents[2]
RUNS = 12
NO_TELEMETRY = {"MLFLOW_DISABLE_TELEMETRY": "true"}
PUBLISH = """
import sys
from benchmarks.publishing import record
from tasks.results.tracking.publish_command import publish
from tasks.results.tracking.settings import TrackingSettings
uri, experiment, runs = sys.argv[1:]
done = publish([record(number) for number in range(int(runs))], TrackingSettings(uri=uri, experiment=experiment))
print(*(done[name] for name in ("created", "unchanged", "superseded")))
"""
COUNTS = """
import sys
from collections import Counter
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
runs = client.search_runs([client.get_experiment_by_name(sys.argv[2]).experiment_id], max_results=1000)
keys = Counter(run.data.tags["palimpsest.key"] for run in runs)
curves = {len(client.get_metric_history(run.info.run_id, "train_loss")) for run in runs}
print(len(runs), max(keys.values()), *{len(run.data.metrics) for run in runs}, *{len(run.data.params) for run in runs},
      *{len(run.inputs.dataset_inputs) for run in runs}, *curves, *{run.info.status for run in runs})
"""


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg2", reason="MLflow on PostgreSQL needs psycopg2 (pip install -e '.[shared]')")
    with postgres_server() as server:
        yield server


def start(folder: Path, code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a program in a folder."""
    path = os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **NO_TELEMETRY}
    environment.pop("MLFLOW_TRACKING_URI", None)
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: "subprocess.Popen[str]") -> list[str]:
    said, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    return said.split()


def check(folder: Path, uri: str) -> None:
    """Two publishers at once, then one again: one whole run of each key."""
    two = [start(folder, PUBLISH, uri, "both", str(RUNS)) for _ in range(2)]
    for process in two:
        output(process)
    assert output(start(folder, PUBLISH, uri, "both", str(RUNS))) == ["0", str(RUNS), "0"]
    counts = output(start(folder, COUNTS, uri, "both"))
    # 63 metrics and three curves, 35 parameters, 6 inputs, 25 points of a curve.
    assert counts == [str(RUNS), "1", "66", "35", "6", "25", "FINISHED"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_into_postgresql_make_no_duplicate(database: PostgresServer, tmp_path: Path) -> None:
    uri = f"postgresql:{database.make_database('direct')}"
    # The tables of a new store, which the second publisher must not make too.
    assert output(start(tmp_path, PUBLISH, uri, "tables", "1")) == ["1", "0", "0"]
    check(tmp_path, uri)
    assert shown_uri(uri.replace("palimpsest@", "palimpsest:secret@")).count("secret") == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_through_a_server_make_no_duplicate(database: PostgresServer, tmp_path: Path) -> None:
    port = free_port()
    server = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    settings = {
        "MLFLOW_BACKEND_STORE_URI": f"postgresql:{database.make_database('served')}",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with Processes(tmp_path) as processes:
        command = [sys.executable, "-m", *server, "--artifacts-destination", str(tmp_path / "artifacts")]
        line = processes.start(command, tmp_path / "log", settings | NO_TELEMETRY)
        until(lambda: not select.select([line], [], [], 0)[0] and listens(port), 180)
        check(tmp_path, f"http://127.0.0.1:{port}")


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
