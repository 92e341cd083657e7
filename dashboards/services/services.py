"""Prefect's and MLflow's servers on the loopback interface: their start, health, stop and passwords.

``services.toml`` has a table for each server. A server and its children have a mark in their environment: its name, its
port, and the folder of the checkout. So no file says what runs, and no other process is touched. Both servers require a
password: another user of the machine could otherwise run commands through Prefect's API. The passwords are random, made
once, and mode 0600.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
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
_MLFLOW_USERS = STATE_FOLDER / "mlflow_users.db"
START_SECONDS, STOP_SECONDS = 180.0, 15.0
"""Seconds until a server must answer, where five to twenty are usual; seconds for it to end after a request."""


class Kind(NamedTuple):
    """A table of ``services.toml``, which explains the fields."""

    title: str
    port: int
    health: str
    address_variable: str
    program: list[str]
    defaults: dict[str, str]
    environment: dict[str, str]


KINDS = {
    name: Kind(**values)
    for name, values in tomllib.loads(Path(__file__).with_name("services.toml").read_text(encoding="utf-8")).items()
}
"""The servers by name, in the order in which they start."""


@dataclass
class Service:
    """A running server."""

    port: int
    processes: list[psutil.Process] = field(default_factory=list)

    @property
    def address(self) -> str:
        """``http://127.0.0.1:4200``."""
        return f"http://{HOST}:{self.port}"


def environment_of(name: str, **values: object) -> dict[str, str]:
    """The variables of a server; ``values``: those in braces in its table."""
    home = os.environ.get("PREFECT_HOME", Path.home() / ".prefect")
    values = {"host": HOST, "prefect_home": home, "secret": secrets.token_urlsafe(), **values}
    return {variable: text.format(**values) for variable, text in KINDS[name].environment.items()}


def port_of(name: str) -> int:
    """The port of a server: from ``PALIMPSEST_NAME_PORT`` in the environment, or the usual one."""
    text = os.environ.get(_port_variable(name)) or str(KINDS[name].port)
    if not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
        raise ParameterError(f"{_port_variable(name)}={text!r} is no port; give a number from 1024 to 65535")
    return int(text)


def _port_variable(name: str) -> str:
    return f"PALIMPSEST_{name.upper()}_PORT"


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(name: str, port: int) -> bool:
    """Whether a server on this port of the loopback interface is ready."""
    # A client of httpx reads all certificates of this machine first, which takes longer than the question.
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", KINDS[name].health)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def running_services(folder: Path) -> dict[str, Service]:
    """The running servers of this checkout, by name, in the order in which they start."""
    found: dict[str, Service] = {}
    # Most checkouts have none, and to look at every process takes a moment.
    for process in psutil.process_iter() if (folder / STATE_FOLDER).exists() else ():
        with suppress(psutil.Error, OSError):
            name, port, place = [*process.environ().get(MARK, "").split(" ", 2), "", ""][:3]
            if place == str(folder.resolve()) and process.status() != psutil.STATUS_ZOMBIE:
                found.setdefault(name, Service(int(port))).processes.append(process)
    return {name: found[name] for name in KINDS if name in found}


def start_services(folder: Path, names: Iterable[str], store: str) -> list[str]:
    """Start the servers that do not run yet, wait until they answer, and return their names.

    ``store``: address of MLflow's database. Raises ``ResourceError`` if a port is in use, or if a server ends or does
    not answer in time. The servers that this call has started are then stopped.
    """
    running = running_services(folder)
    ports = {name: port_of(name) for name in names if name not in running}
    for name, port in ports.items():
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                raise ResourceError(
                    f"port {port} of {KINDS[name].title} is in use; stop the program that has it, or choose another "
                    f"port: make up {_port_variable(name)}=NUMBER"
                )
    values = {"store": store, **make_passwords(folder)}
    users = f"database_uri = sqlite:///{(folder / _MLFLOW_USERS).absolute()}"
    with atomic_writer(folder / STATE_FOLDER / "mlflow_users.ini") as stream:
        stream.write(f"[mlflow]\ndefault_permission = READ\n{users}\n")
    try:
        for name, process in [(name, _start(name, port, folder, values)) for name, port in ports.items()]:
            _wait_until_ready(name, ports[name], process)
    except BaseException:
        stop_services(folder, ports)
        raise
    return list(ports)


def _start(name: str, port: int, folder: Path, values: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a server in a session of its own, so that closing the terminal does not end it; return at once."""
    places = {"folder": folder.absolute(), "state": (folder / STATE_FOLDER).absolute()}
    own = environment_of(name, port=port, **places, **values)
    log = os.open(folder / STATE_FOLDER / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(log, "wb") as stream:
        return subprocess.Popen(
            [sys.executable, *KINDS[name].program, "--host", HOST, "--port", str(port)],
            env={**KINDS[name].defaults, **os.environ, **own, MARK: f"{name} {port} {folder.resolve()}"},
            cwd=folder, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True, umask=0o077,
        )  # fmt: skip


def _wait_until_ready(name: str, port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline, title = time.monotonic() + START_SECONDS, KINDS[name].title
    while not answers(name, port):
        late = time.monotonic() > deadline
        if late or process.poll() is not None:
            failure = f"does not answer after {START_SECONDS:.0f} seconds" if late else "ended while it started"
            raise ResourceError(
                f"{title} {failure}; its output is in {STATE_FOLDER / name!s}.log. The services that were started with "
                "it are stopped"
            )
        time.sleep(0.1)


def stop_services(folder: Path, names: Iterable[str]) -> list[str]:
    """Stop the running ones of the servers, and return their names."""
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
    if not ((folder / FILE).exists() and (folder / FILE).stat().st_size):
        make_folder(folder / STATE_FOLDER, private=True)
        # It has the password of MLflow's first start.
        (folder / _MLFLOW_USERS).unlink(missing_ok=True)
        with atomic_writer(folder / FILE, private=True) as stream:
            stream.write(
                f"PREFECT_API_AUTH_STRING=palimpsest:{new_password()}\n"
                f"MLFLOW_TRACKING_USERNAME=admin\nMLFLOW_TRACKING_PASSWORD={new_password()}\n"
            )
    return dict(line.split("=", 1) for line in (folder / FILE).read_text(encoding="utf-8").splitlines())


def hand_over_passwords(folder: Path) -> None:
    """Let clients in this process and its children log in to the services of this checkout.

    A password goes only to the address of a running server: another program may use the port of a stopped one. The
    user's own variables stay.
    """
    for name, service in running_services(folder).items() if (folder / FILE).exists() else ():
        address = urlsplit(os.environ.get(KINDS[name].address_variable, ""))
        if address.hostname in (HOST, "localhost") and address.port == service.port:
            for variable, value in make_passwords(folder).items():
                if variable.startswith(name.upper()):
                    os.environ.setdefault(variable, value)
