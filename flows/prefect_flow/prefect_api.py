"""The Prefect API that a run reports to: the configured one, that of ``palimpsest up``, or a temporary server that
ends with the run."""

import http.client
import os
import sys
import time
from pathlib import Path

from flows.checkout.run_lock import STATE_FOLDER
from flows.stages.processes import Processes
from tasks.errors import ResourceError

HOME = Path(STATE_FOLDER) / "prefect"
"""Prefect's own folder for a checkout, unless the user has configured Prefect."""
START_SECONDS = 120.0
"""How long a temporary server may take to answer; two to eight seconds are usual."""


def configure(folder: str | Path, *, verbose: bool = False) -> None:
    """Set Prefect's environment; must come before Prefect is imported. What the user has set stays.

    Where nothing names an API, the server that ``palimpsest up`` has started in the checkout is taken; what it asks for
    is handed over, also where the user names it, and to the stages what our MLflow asks for. Prefect's files
    stay in the checkout, its log lines stay off the terminal unless ``verbose``, and nothing is sent home.
    """
    if "PREFECT_HOME" not in os.environ and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ["PREFECT_HOME"] = str(Path(folder).absolute() / HOME)
    if "PREFECT_HOME" in os.environ:
        # A server that starts before Prefect was ever imported here does not make it.
        Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True, mode=0o700)
    # Imported here, as the app's rooms are needed where somebody looks at a run.
    from dashboards.services.passwords import hand_over_passwords
    from dashboards.services.running_service import running_services

    if not likely_configured():
        server = running_services(Path(folder)).get("prefect")
        if server is not None:
            os.environ["PREFECT_API_URL"] = f"{server.address}/api"
            bypass_proxy(server.host)
    if os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        # Whoever may start a server of ours with it may ask one.
        os.environ.setdefault("PREFECT_API_AUTH_STRING", os.environ["PREFECT_SERVER_API_AUTH_STRING"])
    hand_over_passwords(Path(folder))
    defaults = {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_WELCOME": "false",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    }
    if not verbose:
        defaults["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
        defaults["PREFECT_LOGGING_INTERNAL_LEVEL"] = "CRITICAL"
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def likely_configured() -> bool:
    """Whether the environment or a profile may name an API; cheap, and asked before Prefect is imported."""
    if "PREFECT_API_URL" in os.environ:
        return True
    profiles = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect") / "profiles.toml"
    return profiles.exists() and "PREFECT_API_URL" in profiles.read_text(encoding="utf-8", errors="replace")


def configured_url() -> str | None:
    """Address of the API that the user's Prefect settings name, wherever they stand, or ``None``."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url


class TemporaryServer:
    """A Prefect server on the loopback interface, started through the supervisor, which also ends it.

    It answers nobody but this process, which alone has its password, ``USER:PASSWORD``.
    """

    def __init__(self, processes: Processes, folder: str | Path) -> None:
        """Start the server; ``wait`` says when it answers."""
        from dashboards.services.passwords import new_password
        from dashboards.services.service import closed_prefect, free_port

        self._log = Path(folder) / STATE_FOLDER / "logs" / "prefect-server.log"
        self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._log.unlink(missing_ok=True)
        self._port = free_port()
        self.password = f"palimpsest:{new_password()}"
        self._processes = processes
        self._process = processes.start_program(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self._port)],
            self._log,
            {
                "PREFECT_UI_ENABLED": "false",
                "PREFECT_LOGGING_LEVEL": "ERROR",
                "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
                **closed_prefect(self._port, self.password),
            },
        )
        bypass_proxy("127.0.0.1")

    def wait(self) -> str:
        """Block until it answers and return its address; ``ResourceError`` where it does not start."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.status is not None or time.monotonic() > deadline:
                raise ResourceError(
                    f"Prefect's temporary server did not start; its output is in {str(self._log)!r}. Set "
                    "PREFECT_API_URL to use a server that is running, or run the stages with 'dvc repro'"
                )
            time.sleep(0.05)
        return f"http://127.0.0.1:{self._port}/api"

    def stop(self) -> None:
        """End the server, which is not needed after all."""
        self._processes.stop(self._process)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/api/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def bypass_proxy(host: str) -> None:
    """Keep requests to the host from going through a proxy that the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        present = os.environ.get(name, "")
        if host not in present.split(","):
            os.environ[name] = f"{present},{host}" if present else host
