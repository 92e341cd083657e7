"""Prefect's and MLflow's servers on the loopback interface: one table, their start, health and stop, their passwords.

A service and its children have a mark in their environment: its name, its port, and the folder of the checkout. So no
file says what runs, and no other process is touched. Both servers require a password: another user of the machine could
otherwise run commands through Prefect's API. The passwords are random, made once, and mode 0600.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

from tasks.errors import ParameterError, ResourceError
from tasks.files.atomic_file import atomic_writer, make_folder

HOST = "127.0.0.1"
MARK = "PALIMPSEST_SERVICE"
STATE_FOLDER = Path(".palimpsest") / "services"
"""Folder of the services' state in the project; nothing in it is a result."""
FILE = STATE_FOLDER / "passwords"
"""Lines ``NAME=VALUE``, which a shell can read, with the clients' variables as names."""
PREFECT, MLFLOW = "PREFECT_API_AUTH_STRING", "MLFLOW_TRACKING_PASSWORD"
MLFLOW_USER, _MLFLOW_USERS = "admin", STATE_FOLDER / "mlflow_users.db"
START_SECONDS = 180.0
"""Seconds until a service must answer; five to twenty seconds are usual."""
STOP_SECONDS = 15.0
"""Seconds for a service to end after a stop request."""
_USUAL = {
    # Leases of runs on several machines outlive a restart of the server.
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    # The second interface asks a company's server for its analytics settings.
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}
"""Settings that the user's environment replaces."""


class Kind(NamedTuple):
    """A row of the table of services: usual port, path that answers with 200 when ready, clients' variable."""

    title: str
    port: int
    health: str
    address_variable: str


KINDS = {
    "prefect": Kind("Prefect", 4200, "/api/health", "PREFECT_API_URL"),
    "mlflow": Kind("MLflow", 5000, "/health", "MLFLOW_TRACKING_URI"),
}
"""Services in the order in which they start."""


@dataclass(frozen=True)
class Service:
    """A server, with its processes if it runs."""

    name: str
    port: int
    program: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additions to the environment of this process."""
    processes: list[psutil.Process] = field(default_factory=list)

    @property
    def address(self) -> str:
        """``http://127.0.0.1:4200``."""
        return f"http://{HOST}:{self.port}"


def closed_prefect(port: int, password: str) -> dict[str, str]:
    """Settings with which Prefect's server requires the ``password`` (``USER:PASSWORD``).

    By default it requires none, takes requests under any name, and lets pages of any origin read its answers.
    """
    return {
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{port}",
        # Prefect's clients have the counterpart on by default.
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }


def table(folder: Path, store: str) -> list[Service]:
    """The services of a checkout, in the order in which they start; ``store``: address of MLflow's database.

    The store is passed by environment, since it may have a password. Files of runs go to the folder that a client
    without a server uses, so that both can be used in turn.
    """
    passwords, ports = make_passwords(folder), ports_by_setting()
    configuration = (folder / STATE_FOLDER / "mlflow_users.ini").absolute()
    users = f"database_uri = sqlite:///{(folder / _MLFLOW_USERS).absolute()}"
    configuration.write_text(f"[mlflow]\ndefault_permission = READ\n{users}\n", encoding="utf-8")
    environments = {
        "prefect": {
            # With --port alone the interface would look for the API at 4200.
            "PREFECT_SERVER_API_HOST": HOST,
            "PREFECT_SERVER_API_PORT": str(ports["prefect"]),
            "PREFECT_API_URL": f"http://{HOST}:{ports['prefect']}/api",
            # By default it writes the pages into the environment, which may belong to another user.
            "PREFECT_SERVER_UI_STATIC_DIRECTORY": f"{os.environ.get('PREFECT_HOME', Path.home() / '.prefect')}/ui",
            **closed_prefect(ports["prefect"], passwords[PREFECT]),
        },
        "mlflow": {
            "MLFLOW_AUTH_CONFIG_PATH": str(configuration),
            "MLFLOW_AUTH_ADMIN_USERNAME": MLFLOW_USER,
            "MLFLOW_AUTH_ADMIN_PASSWORD": passwords[MLFLOW],
            "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_urlsafe(),
            "MLFLOW_BACKEND_STORE_URI": store,
            "MLFLOW_DEFAULT_ARTIFACT_ROOT": str(folder.absolute() / "mlruns"),
            # Otherwise the server has workers for jobs of its own, in 2 GB of memory.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
    }
    options = {"prefect": "start", "mlflow": "--app-name basic-auth --workers 1 --no-serve-artifacts"}
    # -P: the folder of the caller is not searched for modules.
    programs = {
        name: f"-P -m {name} server {more} --host {HOST} --port {ports[name]}".split() for name, more in options.items()
    }
    return [Service(name, ports[name], [sys.executable, *programs[name]], environments[name]) for name in KINDS]


def ports_by_setting() -> dict[str, int]:
    """The port of each service: from ``PALIMPSEST_NAME_PORT`` in the environment, or the usual one."""
    ports = {}
    for name, kind in KINDS.items():
        text = os.environ.get(_port_variable(name)) or str(kind.port)
        if not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
            raise ParameterError(f"{_port_variable(name)}={text!r} is no port; give a number from 1024 to 65535")
        ports[name] = int(text)
    return ports


def _port_variable(name: str) -> str:
    return f"PALIMPSEST_{name.upper()}_PORT"


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int, path: str) -> bool:
    """Whether a server on this port of the loopback interface answers with status 200."""
    # A client of httpx reads all certificates of this machine first, which takes longer than the question.
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def running_services(folder: Path) -> dict[str, Service]:
    """The running services of this checkout, by name, in the order in which they start."""
    found: dict[str, Service] = {}
    # Most checkouts have none, and to look at every process takes a moment.
    for process in psutil.process_iter() if (folder / STATE_FOLDER).exists() else ():
        with suppress(psutil.Error, OSError):
            name, port, place = [*process.environ().get(MARK, "").split(" ", 2), "", ""][:3]
            if place == str(folder.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.setdefault(name, Service(name, int(port))).processes.append(process)
    return {name: found[name] for name in KINDS if name in found}


def start_services(folder: Path, services: Sequence[Service]) -> list[str]:
    """Start the services that do not run yet, wait until they answer, and return their names.

    Raises ``ResourceError`` if a port is in use, or if a service ends or does not answer in time. The services that
    this call has started are then stopped.
    """
    make_folder(folder / STATE_FOLDER, private=True)
    running = running_services(folder)
    missing = [service for service in services if service.name not in running]
    for service in missing:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, service.port)) == 0:
                raise ResourceError(
                    f"port {service.port} of {KINDS[service.name].title} is in use; stop the program that has it, or "
                    f"choose another port: make up {_port_variable(service.name)}=NUMBER"
                )
    try:
        for service, process in [(service, _start(service, folder)) for service in missing]:
            _wait_until_ready(service, process)
    except BaseException:
        stop_services(folder, [service.name for service in missing])
        raise
    return [service.name for service in missing]


def _start(service: Service, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a service in a session of its own, so that closing the terminal does not end it; return at once."""
    mark = {MARK: f"{service.name} {service.port} {folder.resolve()}"}
    log = os.open(folder / STATE_FOLDER / f"{service.name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(log, "wb") as stream:
        return subprocess.Popen(
            service.program, cwd=folder, env={**_USUAL, **os.environ, **service.environment, **mark},
            stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True, umask=0o077,
        )  # fmt: skip


def _wait_until_ready(service: Service, process: "subprocess.Popen[bytes]") -> None:
    deadline, kind = time.monotonic() + START_SECONDS, KINDS[service.name]
    while not answers(service.port, kind.health):
        late = time.monotonic() > deadline
        if late or process.poll() is not None:
            failure = f"does not answer after {START_SECONDS:.0f} seconds" if late else "ended while it started"
            raise ResourceError(
                f"{kind.title} {failure}; its output is in {STATE_FOLDER / service.name!s}.log. The services that "
                "were started with it are stopped"
            )
        time.sleep(0.1)


def stop_services(folder: Path, names: Iterable[str]) -> list[str]:
    """Stop the running ones of the services, and return their names."""
    services = {name: service for name, service in running_services(folder).items() if name in names}
    alive = [process for service in services.values() for process in service.processes]
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                end(process)
        _, alive = psutil.wait_procs(alive, timeout=STOP_SECONDS)
    return list(services)


def new_password() -> str:
    """32 letters, digits, ``-`` and ``_`` (192 bits)."""
    return secrets.token_urlsafe(24)


def make_passwords(folder: Path) -> dict[str, str]:
    """The variables of the file of passwords, which is made if it is missing."""
    path = folder / FILE
    if not (path.exists() and path.stat().st_size):
        make_folder(folder / STATE_FOLDER, private=True)
        # It has the password of MLflow's first start.
        (folder / _MLFLOW_USERS).unlink(missing_ok=True)
        prefect, mlflow = f"palimpsest:{new_password()}", new_password()
        with atomic_writer(path, private=True) as stream:
            stream.write(f"{PREFECT}={prefect}\nMLFLOW_TRACKING_USERNAME={MLFLOW_USER}\n{MLFLOW}={mlflow}\n")
    return dict(line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines())


def hand_over_passwords(folder: Path) -> None:
    """Let clients in this process and its children log in to the services of this checkout.

    A password goes only to the address of a running service: another program may use the port of a stopped one. The
    user's own variables stay.
    """
    for name, service in running_services(folder).items() if (folder / FILE).exists() else ():
        address = urlsplit(os.environ.get(KINDS[name].address_variable, ""))
        if address.hostname in (HOST, "localhost") and address.port == service.port:
            for variable, value in make_passwords(folder).items():
                if variable.startswith(name.upper()):
                    os.environ.setdefault(variable, value)
