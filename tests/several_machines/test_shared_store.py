"""Publishing into a store that several machines share: PostgreSQL through MLflow's server."""

import multiprocessing
import os
import pwd
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from mlflow import MlflowClient
from scratch_project import until

from benchmarks.publishing import record
from dashboards.services.services import free_port
from flows.stages.processes import Processes
from tasks.results.tracking.publish_command import publish
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import KEY_TAG, shown_uri

RUNS = 12
AS_ROOT = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
"""PostgreSQL refuses to run as root; root runs it as another user."""


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a database in a PostgreSQL server of its own, on a free port of the loopback interface."""
    pytest.importorskip("psycopg2", reason="MLflow on PostgreSQL needs psycopg2 (pip install -e '.[shared]')")
    if missing := [name for name in ("initdb", "pg_ctl", "createdb", *AS_ROOT[:1]) if shutil.which(name) is None]:
        pytest.skip(f"PostgreSQL, or a way to run it, is not installed ({', '.join(missing)} not found)")
    # A short path, which a socket's must be, in a folder that the other user may enter.
    with tempfile.TemporaryDirectory(prefix="palimpsest-postgres-", dir="/tmp") as folder:
        if AS_ROOT:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
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
    done = subprocess.run([*AS_ROOT, *command], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


def published(uri: str) -> tuple[int, int]:
    """The numbers of created and of unchanged runs."""
    done = publish([record(number) for number in range(RUNS)], TrackingSettings(uri=uri, experiment="both"))
    return done["created"], done["unchanged"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_publishers_at_once_then_one_again_make_one_whole_run_of_each_key(database: str, tmp_path: Path) -> None:
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    server = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    settings = {"MLFLOW_BACKEND_STORE_URI": database, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    settings["MLFLOW_DISABLE_TELEMETRY"] = "true"
    with Processes(tmp_path) as processes:
        command = [sys.executable, "-m", *server, "--artifacts-destination", str(tmp_path / "artifacts")]
        line = processes.start(command, tmp_path / "log", settings)
        until(lambda: not select.select([line], [], [], 0)[0] and listens(port), 180)
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as both:
            list(both.map(published, [uri] * 2))
        assert published(uri) == (0, RUNS)
        client = MlflowClient(uri)
        found = client.search_runs([client.get_experiment_by_name("both").experiment_id], max_results=1000)
        curves = {len(client.get_metric_history(each.info.run_id, "train_loss")) for each in found}
    assert (len(found), max(Counter(each.data.tags[KEY_TAG] for each in found).values()), curves) == (RUNS, 1, {25})
    # 63 metrics and three curves, 35 parameters, 6 inputs.
    sizes = {(len(each.data.metrics), len(each.data.params), len(each.inputs.dataset_inputs)) for each in found}
    assert (sizes, {each.info.status for each in found}) == ({(66, 35, 6)}, {"FINISHED"})
    assert "secret" not in shown_uri(database.replace("palimpsest@", "palimpsest:secret@"))


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
