"""Publishing into a store that several machines share: PostgreSQL through MLflow's server."""

import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from scratch_project import until

from dashboards.services.services import free_port
from flows.stages.processes import Processes
from tasks.results.tracking.tracking_store import shown_uri

CHECKOUT = Path(__file__).parents[2]
RUNS = 12
NO_TELEMETRY = {"MLFLOW_DISABLE_TELEMETRY": "true"}
AS_ROOT = os.geteuid() == 0
USER = "nobody"
"""PostgreSQL refuses to run as root; root runs it as this user."""
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


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a database in a PostgreSQL server of its own, on a free port of the loopback interface."""
    pytest.importorskip("psycopg2", reason="MLflow on PostgreSQL needs psycopg2 (pip install -e '.[shared]')")
    needed = ["initdb", "pg_ctl", "createdb", *(["runuser"] if AS_ROOT else [])]
    if missing := [name for name in needed if shutil.which(name) is None]:
        pytest.skip(f"PostgreSQL, or a way to run it, is not installed ({', '.join(missing)} not found)")
    # A short path, which a socket's must be, in a folder that the other user may enter.
    with tempfile.TemporaryDirectory(prefix="palimpsest-postgres-", dir="/tmp") as folder:
        if AS_ROOT:
            os.chown(folder, pwd.getpwnam(USER).pw_uid, -1)
        data, port = f"{folder}/data", free_port()
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("initdb", "-D", data, "-U", "palimpsest", "-A", "trust", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            run("createdb", "-h", folder, "-p", str(port), "-U", "palimpsest", "runs")
            yield f"postgresql://palimpsest@127.0.0.1:{port}/runs"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def run(*command: str) -> None:
    other = ["runuser", "-u", USER, "--"] if AS_ROOT else []
    done = subprocess.run([*other, *command], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_at_once_then_one_again_make_one_whole_run_of_each_key(database: str, tmp_path: Path) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    server = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    settings = {"MLFLOW_BACKEND_STORE_URI": database, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with Processes(tmp_path) as processes:
        command = [sys.executable, "-m", *server, "--artifacts-destination", str(tmp_path / "artifacts")]
        line = processes.start(command, tmp_path / "log", settings | NO_TELEMETRY)
        until(lambda: not select.select([line], [], [], 0)[0] and listens(port), 180)
        for process in [start(tmp_path, PUBLISH, uri, "both", str(RUNS)) for _ in range(2)]:
            output(process)
        assert output(start(tmp_path, PUBLISH, uri, "both", str(RUNS))) == ["0", str(RUNS), "0"]
        counts = output(start(tmp_path, COUNTS, uri, "both"))
    # 63 metrics and three curves, 35 parameters, 6 inputs, 25 points of a curve.
    assert counts == [str(RUNS), "1", "66", "35", "6", "25", "FINISHED"]
    assert "secret" not in shown_uri(database.replace("palimpsest@", "palimpsest:secret@"))


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
