"""Publishing into a store that several machines share: PostgreSQL, directly and through MLflow's server."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from postgres_server import PostgresServer, postgres_server

from dashboards.services.service import free_port
from tasks.results.tracking.tracking_store import shown_uri

CHECKOUT = Path(__file__).parents[2]
RUNS = 12
PUBLISH = """
import sys
from benchmarks.publishing import record
from tasks.results.tracking.publication import publish
from tasks.results.tracking.settings import TrackingSettings
uri, experiment, runs = sys.argv[1:]
done = publish([record(number) for number in range(int(runs))], TrackingSettings(uri=uri, experiment=experiment))
print(*(done[name] for name in ("created", "completed", "unchanged", "superseded")))
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
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")]),
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
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
    assert output(start(folder, PUBLISH, uri, "both", str(RUNS))) == ["0", "0", str(RUNS), "0"]
    counts = output(start(folder, COUNTS, uri, "both"))
    # 63 metrics and three curves, 35 parameters, 6 inputs, 25 points of a curve.
    assert counts == [str(RUNS), "1", "66", "35", "6", "25", "FINISHED"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_into_postgresql_make_no_duplicate(database: PostgresServer, tmp_path: Path) -> None:
    uri = f"postgresql:{database.make_database('direct')}"
    # The tables of a new store, which the second publisher must not make too.
    assert output(start(tmp_path, PUBLISH, uri, "tables", "1")) == ["1", "0", "0", "0"]
    check(tmp_path, uri)
    assert shown_uri(uri.replace("palimpsest@", "palimpsest:secret@")).count("secret") == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_through_a_server_make_no_duplicate(database: PostgresServer, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": f"postgresql:{database.make_database('served')}",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*command, "--artifacts-destination", str(tmp_path / "artifacts")],
            env=environment,
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    try:
        wait_until_listening(server.pid, port)
        check(tmp_path, f"http://127.0.0.1:{port}")
    finally:
        for process in [*psutil.Process(server.pid).children(recursive=True), psutil.Process(server.pid)]:
            with suppress(psutil.NoSuchProcess):
                process.terminate()
        server.wait(30)


def wait_until_listening(pid: int, port: int) -> None:
    import socket

    deadline = time.monotonic() + 180
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        assert time.monotonic() < deadline
        assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        time.sleep(0.2)
