"""What the two services are: how each is started, where it answers, and what says that it is ready."""

import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from tasks.errors import ParameterError
from tasks.files.atomic_file import make_folder
from tasks.spelling import nearest

HOST = "127.0.0.1"
"""The interface that a service listens on unless told otherwise."""
DEFAULT_PORTS = {"prefect": 4200, "mlflow": 5000}
"""Services in the order in which they start, with the ports that their makers chose."""
STATE_FOLDER = Path(".palimpsest") / "services"
"""Below the folder of the project; nothing in it is a result."""
_PYTHON = (sys.executable, "-P", "-m")
"""-P: the folder that we are in is not searched for modules."""
TITLES = {"prefect": "Prefect", "mlflow": "MLflow"}
PORT_VARIABLES = {name: f"PALIMPSEST_{name.upper()}_PORT" for name in DEFAULT_PORTS}
"""Environment variables that choose another port."""
PREFECT_PASSWORD = "PREFECT_SERVER_API_AUTH_STRING"
"""Environment variable with the user and password that Prefect's server asks for, ``USER:PASSWORD``."""
MLFLOW_PASSWORD = "MLFLOW_AUTH_ADMIN_PASSWORD"
"""Environment variable with the password of MLflow's first user."""
_MLFLOW_SECRET = "MLFLOW_FLASK_SERVER_SECRET_KEY"
"""Environment variable with the key that MLflow protects its forms with."""
USERS = STATE_FOLDER / "mlflow_users.db"
"""MLflow's users, where the password of the first one is the user's own."""
OWN_USERS = STATE_FOLDER / "mlflow_own_users.db"
"""The same where it is a random one."""
_MLFLOW_USERS = """[mlflow]
default_permission = READ
database_uri = sqlite:///{database}
admin_username = admin
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""
_PREFECT_INTERFACE = {
    # The second interface asks a company's server for its analytics settings, whatever the server here says.
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}
"""Settings of Prefect's interface that the user's environment may set otherwise."""


@dataclass(frozen=True)
class Service:
    """One server, not started yet."""

    name: str
    """``prefect`` or ``mlflow``."""
    port: int
    health: str
    """Path that answers with status 200 as soon as the service is ready."""
    program: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additions to the environment of this process."""
    host: str = HOST
    """Where this machine reaches it."""
    asks: bool = False
    """Whether it asks for a password."""

    @property
    def address(self) -> str:
        """Where a browser on this machine finds it."""
        return address_of(self.port, self.host)


def address_of(port: int, host: str = HOST) -> str:
    """``http://127.0.0.1:4200``."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def check_names(names: Sequence[str]) -> list[str]:
    """The services of these names, all of them where there is none, in the order in which they start."""
    for name in names:
        if name not in DEFAULT_PORTS:
            raise ParameterError(
                f"service {name!r} is not known{nearest(name, DEFAULT_PORTS)}; allowed: {', '.join(DEFAULT_PORTS)}"
            )
    return [name for name in DEFAULT_PORTS if not names or name in names]


def ports_by_setting(environment: Mapping[str, str] = os.environ) -> dict[str, int]:
    """The port of each service: from its environment variable, or the usual one.

    Raises ``ParameterError`` where a variable holds no port, or where two services would have the same.
    """
    ports: dict[str, int] = {}
    for name, usual in DEFAULT_PORTS.items():
        text = environment.get(PORT_VARIABLES[name]) or str(usual)
        if not (text.isascii() and text.isdigit() and 1024 <= int(text) <= 65535):
            raise ParameterError(f"{PORT_VARIABLES[name]}={text!r} is no port; give a number from 1024 to 65535")
        other = next((other for other, port in ports.items() if port == int(text)), None)
        if other is not None:
            raise ParameterError(
                f"{TITLES[other]} and {TITLES[name]} would both have port {text}; give each its own with "
                f"{PORT_VARIABLES[other]} and {PORT_VARIABLES[name]}"
            )
        ports[name] = int(text)
    return ports


def closed_prefect(port: int, password: str, host: str = HOST) -> dict[str, str]:
    """Settings with which Prefect's server answers nobody but who has ``password`` (``USER:PASSWORD``).

    By default it asks nobody, takes requests under any name, and lets pages of any origin read its answers.
    """
    return {
        PREFECT_PASSWORD: password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": address_of(port, host),
        # Prefect's clients have the counterpart on by default.
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }


def prefect_service(port: int, password: str, host: str = HOST) -> Service:
    """Prefect's server with its interface, which asks for ``password`` (``USER:PASSWORD``).

    Its home is the one that ``palimpsest run`` uses in this checkout.
    """
    near = reached_at(host)
    # From other machines the browser finds the API where it found the page.
    interface = {} if is_loopback(host) else {"PREFECT_UI_API_URL": "/api"}
    return Service(
        name="prefect",
        port=port,
        health="/api/health",
        program=[*_PYTHON, "prefect", "server", "start", "--host", host, "--port", str(port)],
        host=near,
        asks=True,
        # With --port alone the interface would look for the API at 4200.
        environment={
            "PREFECT_SERVER_API_HOST": host,
            "PREFECT_SERVER_API_PORT": str(port),
            "PREFECT_API_URL": f"{address_of(port, near)}/api",
            # Leases of runs on several machines outlive a restart of the server.
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": os.environ.get(
                "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE", "prefect.server.concurrency.lease_storage.filesystem"
            ),
            **interface,
            **closed_prefect(port, password, near),
            **{name: os.environ.get(name, value) for name, value in _PREFECT_INTERFACE.items()},
        },
    )


def mlflow_service(port: int, store: str, folder: Path, password: str | None = None, host: str = HOST) -> Service:
    """MLflow's server over the store that the stages write to; it asks for ``password`` where there is one.

    ``store``: its address, handed over by environment, since it may hold a password. Files of runs go where a client
    without a server puts them, so that both can be used in turn.
    """
    if is_loopback(host):
        artifacts = ["--no-serve-artifacts"]
        place = {"MLFLOW_DEFAULT_ARTIFACT_ROOT": str(folder.absolute() / "mlruns")}
    else:
        # Other machines do not have the folder: the server takes their files and hands them out.
        artifacts = ["--artifacts-destination", str(folder.absolute() / "mlruns")]
        place = {}
    if host != HOST:
        place["MLFLOW_SERVER_ALLOWED_HOSTS"] = os.environ.get("MLFLOW_SERVER_ALLOWED_HOSTS") or _names_of(host)
    if password is not None:
        # It writes the first user's password into its database once: random passwords have one of their own.
        database = USERS if password == os.environ.get(MLFLOW_PASSWORD) else OWN_USERS
        make_folder(folder / STATE_FOLDER, private=True)
        configuration = folder / STATE_FOLDER / "mlflow_users.ini"
        configuration.write_text(_MLFLOW_USERS.format(database=(folder / database).absolute()), encoding="utf-8")
        place |= {
            "MLFLOW_AUTH_CONFIG_PATH": str(configuration.absolute()),
            MLFLOW_PASSWORD: password,
            _MLFLOW_SECRET: os.environ.get(_MLFLOW_SECRET) or secrets.token_urlsafe(),
        }
    return Service(
        name="mlflow",
        port=port,
        health="/health",
        program=[
            *(*_PYTHON, "mlflow", "server", "--host", host, "--port", str(port)),
            *("--workers", "1", *artifacts, *(["--app-name", "basic-auth"] if password else [])),
        ],
        host=reached_at(host),
        asks=password is not None,
        environment={
            **place,
            "MLFLOW_BACKEND_STORE_URI": store,
            # Without it the server keeps workers for jobs of its own, in 2 GB of memory.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
    )


def _names_of(host: str) -> str:
    """The names under which MLflow lets itself be asked for: those of this machine, and addresses of private networks,
    as MLflow itself has them."""
    names = ["localhost", HOST, "[::1]", reached_at(host), socket.gethostname(), socket.getfqdn()]
    networks = ["10.*", "192.168.*", *(f"172.{part}.*" for part in range(16, 32))]
    return ",".join(dict.fromkeys([*names, *(f"{name}:*" for name in names), *networks]))


def mlflow_user() -> str:
    """The name of MLflow's first user."""
    return os.environ.get("MLFLOW_AUTH_ADMIN_USERNAME") or "admin"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the interface. ``ParameterError`` where it is no address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        raise ParameterError(
            f"--host {host!r} is no address; give that of an interface of this machine, or 0.0.0.0 for all of them"
        ) from None


def reached_at(host: str) -> str:
    """Where this machine reaches a service that listens on ``host``."""
    if host == "localhost":
        return HOST
    return {"0.0.0.0": HOST, "::": "::1"}.get(host, host)


def is_server(address: str | None) -> bool:
    """Whether an address is that of a server, and not of a database."""
    return urlsplit(address or "").scheme in ("http", "https")


def is_at(address: str, port: int, host: str = HOST) -> bool:
    """Whether a server's address is that of the service that we would start on ``port`` of ``host``."""
    parts = urlsplit(address)
    return parts.hostname in (HOST, "localhost", "::1", host, reached_at(host)) and parts.port == port
