"""The services: a row for each with its port and health path, and the command and environment that start it."""

import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil

from tasks.errors import ParameterError

HOST = "127.0.0.1"
"""The interface that services listen on."""


class Kind(NamedTuple):
    """A row of the table of services."""

    title: str
    port: int
    """The usual port."""
    health: str
    """Path that answers with status 200 when the service is ready."""
    variable: str
    """Environment variable that chooses another port."""
    client: str
    """Environment variable from which clients have the address."""


KINDS = {
    "prefect": Kind("Prefect", 4200, "/api/health", "PALIMPSEST_PREFECT_PORT", "PREFECT_API_URL"),
    "mlflow": Kind("MLflow", 5000, "/health", "PALIMPSEST_MLFLOW_PORT", "MLFLOW_TRACKING_URI"),
}
"""Services in the order in which they start."""
TITLES = {name: kind.title for name, kind in KINDS.items()}
STATE_FOLDER = Path(".palimpsest") / "services"
"""Folder of the services' state in the project; nothing in it is a result."""
MLFLOW_USER = "admin"
MLFLOW_USERS = STATE_FOLDER / "mlflow_users.db"
"""MLflow's database of users, which has the password of its first start."""
# -P: the folder of the caller is not searched for modules.
_PYTHON = (sys.executable, "-P", "-m")


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


def prefect_service(port: int, password: str) -> Service:
    """Prefect's server with its interface. Its home is that of ``palimpsest run`` in this checkout."""
    usual = {
        # Leases of runs on several machines outlive a restart of the server.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # The second interface asks a company's server for its analytics settings.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # By default it writes the pages into the environment, which may belong to another user.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": f"{os.environ.get('PREFECT_HOME', Path.home() / '.prefect')}/ui",
    }
    environment = {
        # With --port alone the interface would look for the API at 4200.
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": f"http://{HOST}:{port}/api",
        **closed_prefect(port, password),
        **{name: os.environ.get(name, value) for name, value in usual.items()},
    }
    program = [*_PYTHON, "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    return Service("prefect", port, program, environment)


def mlflow_service(port: int, store: str, folder: Path, password: str) -> Service:
    """MLflow's server with the store that the stages write to; the folder of state exists.

    ``store`` is passed by environment, since it may have a password. Files of runs go to the folder that a client
    without a server uses, so that both can be used in turn.
    """
    configuration = (folder / STATE_FOLDER / "mlflow_users.ini").absolute()
    users = f"database_uri = sqlite:///{(folder / MLFLOW_USERS).absolute()}"
    configuration.write_text(f"[mlflow]\ndefault_permission = READ\n{users}\n", encoding="utf-8")
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(configuration),
        "MLFLOW_AUTH_ADMIN_USERNAME": MLFLOW_USER,
        "MLFLOW_AUTH_ADMIN_PASSWORD": password,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_urlsafe(),
        "MLFLOW_BACKEND_STORE_URI": store,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": str(folder.absolute() / "mlruns"),
        # Otherwise the server has workers for jobs of its own, in 2 GB of memory.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    server = ["mlflow", "server", "--app-name", "basic-auth", "--host", HOST, "--port", str(port)]
    return Service("mlflow", port, [*_PYTHON, *server, "--workers", "1", "--no-serve-artifacts"], environment)


def answers(port: int, path: str) -> bool:
    """Whether a server on this port of the loopback interface answers with status 200."""
    import httpx

    try:
        return httpx.get(f"http://{HOST}:{port}{path}", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def free_port() -> int:
    """A free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def ports_by_setting() -> dict[str, int]:
    """The port of each service: from its environment variable, or the usual one."""
    ports: dict[str, int] = {}
    for name, kind in KINDS.items():
        text = os.environ.get(kind.variable) or str(kind.port)
        if not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
            raise ParameterError(f"{kind.variable}={text!r} is no port; give a number from 1024 to 65535")
        ports[name] = int(text)
    return ports


def is_server(address: str) -> bool:
    """Whether an address is that of a server, and not of a database."""
    return urlsplit(address).scheme in ("http", "https")


def is_at(address: str, port: int) -> bool:
    """Whether an address is that of a service on this port of this machine."""
    parts = urlsplit(address)
    return parts.hostname in (HOST, "localhost") and parts.port == port
