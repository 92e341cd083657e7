"""Real servers that are killed and started again: Prefect's, MLflow's, and PostgreSQL below them."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from fault_place import CHECKOUT, kill, kill_family, wait_until

sys.path.insert(0, str(CHECKOUT / "tests" / "several_machines"))
sys.path.insert(0, str(CHECKOUT / "tests" / "flows"))
from postgres_server import PostgresServer
from prefect_server import ask, log_in

from dashboards.services.service import Service, free_port, mlflow_service, prefect_service

PASSWORD = "faults:a password"
"""What Prefect's servers ask for here."""


class Server:
    """One of our services on a free port, with everything that it keeps in one folder."""

    def __init__(self, service: Service, folder: Path, environment: dict[str, str]) -> None:
        self._service, self._folder = service, folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))},
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            **service.environment,
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return self._service.address

    def start(self) -> None:
        with open(self._folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                list(self._service.program),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers, 300, lambda: (self._folder / "server.log").read_text(errors="replace")[-4000:])

    def kill(self) -> None:
        assert self._process is not None
        kill_family(self._process.pid)
        self._process.wait()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=5)
        try:
            connection.request("GET", self._service.health)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def prefect_server(folder: Path, database: str | None = None) -> Iterator[Server]:
    """Prefect's server with a store of SQLite, or on the PostgreSQL database of this address."""
    environment = {"PREFECT_HOME": str(folder)}
    if database is not None:
        environment["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = f"postgresql+asyncpg:{database}"
    server = Server(prefect_service(free_port(), PASSWORD), folder, environment)
    log_in(server.address, PASSWORD)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def mlflow_server(folder: Path, store: str) -> Iterator[Server]:
    """MLflow's server over a store."""
    server = Server(mlflow_service(free_port(), store, folder), folder, {})
    server.start()
    try:
        yield server
    finally:
        server.kill()


def kill_postgres(server: PostgresServer) -> None:
    """SIGKILL of PostgreSQL's first process; the others notice and end."""
    pid = int((server.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    postmaster = psutil.Process(pid)
    family = postmaster.children(recursive=True)
    kill(postmaster)
    psutil.wait_procs([postmaster, *family], timeout=30)


def restart_postgres(server: PostgresServer) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            server.start()
            return
        except AssertionError:
            # The memory that the killed one shared with others is still being given back.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
GOING_ON = ["SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING"]


def check_no_run_goes_on(address: str) -> None:
    """The server takes no flow run to be going on; one that it does is ended, so that it is judged once."""
    asked = {"flow_runs": {"state": {"type": {"any_": GOING_ON}}}}
    found = ask(f"{address}/api", "/flow_runs/filter", asked)
    assert isinstance(found, list), found
    for run in found:
        ask(f"{address}/api", f"/flow_runs/{run['id']}/set_state", {"state": {"type": "CRASHED"}, "force": True})
    assert not found, [(run["name"], run["state_name"]) for run in found]
