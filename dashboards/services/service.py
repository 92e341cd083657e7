"""What the three services are: how each is started, where it answers, and what says that it is ready."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from tasks.errors import ParameterError, ResourceError
from tasks.spelling import nearest

HOST = "127.0.0.1"
"""The only interface that a service listens on: none of them asks who is there."""
DEFAULT_PORTS = {"prefect": 4200, "mlflow": 5000, "app": 8501}
"""Services in the order in which they start, with the ports that their makers chose."""
_PYTHON = (sys.executable, "-P", "-m")
"""-P: the folder that we are in is not searched for modules."""
TITLES = {"prefect": "Prefect", "mlflow": "MLflow", "app": "app"}
PORT_VARIABLES = {name: f"PALIMPSEST_{name.upper()}_PORT" for name in DEFAULT_PORTS}
"""Environment variables that choose another port."""
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
    """``prefect``, ``mlflow`` or ``app``."""
    port: int
    health: str
    """Path that answers with status 200 as soon as the service is ready."""
    program: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Additions to the environment of this process."""

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return address_of(self.port)


def address_of(port: int) -> str:
    """``http://127.0.0.1:4200``."""
    return f"http://{HOST}:{port}"


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


def prefect_service(port: int) -> Service:
    """Prefect's server with its interface; its home is the one that ``palimpsest run`` uses in this checkout."""
    return Service(
        name="prefect",
        port=port,
        health="/api/health",
        program=[*_PYTHON, "prefect", "server", "start", "--host", HOST, "--port", str(port)],
        # With --port alone the interface would look for the API at 4200.
        environment={
            "PREFECT_SERVER_API_HOST": HOST,
            "PREFECT_SERVER_API_PORT": str(port),
            "PREFECT_API_URL": f"{address_of(port)}/api",
            **{name: os.environ.get(name, value) for name, value in _PREFECT_INTERFACE.items()},
        },
    )


def mlflow_service(port: int, store: str, folder: Path) -> Service:
    """MLflow's server over the store that the stages write to.

    ``store``: its address, handed over by environment, since it may hold a password. Files of runs go where a client
    without a server puts them, so that both can be used in turn.
    """
    return Service(
        name="mlflow",
        port=port,
        health="/health",
        program=[
            *(*_PYTHON, "mlflow", "server", "--host", HOST, "--port", str(port)),
            *("--workers", "1", "--no-serve-artifacts"),
        ],
        environment={
            "MLFLOW_BACKEND_STORE_URI": store,
            "MLFLOW_DEFAULT_ARTIFACT_ROOT": str(folder.absolute() / "mlruns"),
            # Without it the server keeps workers for jobs of its own, in 2 GB of memory.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
    )


def app_service(port: int, store: str | None) -> Service:
    """The interactive app; ``store``: address of the MLflow server to read, or ``None`` for the configured store.

    Raises ``ResourceError`` where Streamlit is not installed.
    """
    if find_spec("streamlit") is None:
        raise ResourceError(
            "the app needs Streamlit, which is not installed; run \"pip install -e '.[app]'\", or start the others "
            "alone with 'palimpsest up prefect mlflow'"
        )
    page = Path(__file__).parent.parent / "app" / "page.py"
    # The rest of its settings stand in app/.streamlit/config.toml, where they hold for 'streamlit run' too.
    options = [f"--server.address={HOST}", f"--server.port={port}", f"--browser.serverAddress={HOST}"]
    return Service(
        name="app",
        port=port,
        health="/_stcore/health",
        program=[*_PYTHON, "streamlit", "run", str(page), *options],
        environment={"MLFLOW_TRACKING_URI": store} if store is not None else {},
    )


def is_server(address: str | None) -> bool:
    """Whether an address is that of a server, and not of a database."""
    return urlsplit(address or "").scheme in ("http", "https")


def is_at(address: str, port: int) -> bool:
    """Whether a server's address is that of the service that we would start on ``port``."""
    parts = urlsplit(address)
    return parts.hostname in (HOST, "localhost", "::1") and parts.port == port
