"""The flow run of ``palimpsest run``, and its Prefect API: the configured one, the server of ``palimpsest up``, or a
temporary server that ends with the run."""

import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.graph import Action, Node
from flows.runs.preparation import Run
from flows.stages.executor import STOPPED, Outcome, State
from flows.stages.processes import Processes
from tasks.errors import ResourceError

HOME = Path(STATE_FOLDER) / "prefect"
"""Prefect's own folder for a checkout, unless the user has configured Prefect."""
START_SECONDS = 120.0
"""Seconds until a temporary server must answer; two to eight seconds are usual."""
UNNEEDED = (
    "CANCELLATION_CLEANUP CLEANUP_RECONCILER FOREMAN LATE_RUNS PAUSE_EXPIRATIONS REPOSSESSOR SCHEDULER TRIGGERS"
).split()
"""Services of Prefect's server that a single run does not need: they are for deployments, schedules and workers."""


def drive(run: Run, parameters: Mapping[str, Any]) -> None:
    """Bring every stage of the run to an outcome.

    ``parameters`` are the flow's, for Prefect's record. SIGINT, SIGTERM and a cancellation in Prefect stop running
    stages within seconds; finished stages stay finished. Raises errors that prevent the flow.
    """
    configure(run.root)
    with Processes(run.root, inherited=[run.lock]) as processes:
        # The import of Prefect takes a second, in which the server can start.
        server = None if configured_url() else TemporaryServer(processes, run.root)
        from prefect.settings import (
            PREFECT_API_AUTH_STRING,
            PREFECT_API_URL,
            PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
            PREFECT_LOGGING_TO_API_ENABLED,
            temporary_settings,
        )

        from flows.prefect_flow.experiment import flow_of

        # Without a heartbeat, since joining its thread costs a second at the end of every flow run.
        settings: dict[Any, Any] = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        if server is not None:
            settings |= {
                PREFECT_API_URL: server.wait(),
                PREFECT_API_AUTH_STRING: server.password,
                PREFECT_LOGGING_TO_API_ENABLED: False,
            }
        try:
            with temporary_settings(settings):
                flow_of(run, processes, shown=server is None)(**parameters)
        except Exception as error:
            # A failed stage is in the outcomes; after a stop, errors are of the stop.
            if not run.stopped and not any(one.state is State.FAILED for one in run.outcomes.values()):
                raise _explained(error) from error
    run.outcomes = {name: run.outcomes.get(name) or _unfinished(stage) for name, stage in run.plan.items()}


def _unfinished(stage: Node) -> Outcome:
    if stage.action is Action.UNCHANGED:
        return Outcome(stage.name, State.UNCHANGED)
    return Outcome(stage.name, State.SKIPPED, error=STOPPED)


def _explained(error: Exception) -> Exception:
    """A user error for a Prefect API that does not answer or asks for a login; any other error stays as it is."""
    import httpx

    cause: BaseException | None = error
    while cause is not None:
        status = cause.response.status_code if isinstance(cause, httpx.HTTPStatusError) else None
        if status in (401, 403):
            return ResourceError(
                "Prefect's server requires a login: set PREFECT_API_AUTH_STRING=USER:PASSWORD in the environment"
            )
        if isinstance(cause, httpx.TransportError) or (status or 0) >= 500:
            return ResourceError(
                f"Prefect's API does not answer ({status or type(cause).__name__}); see that its server and database "
                "run, or unset PREFECT_API_URL to use a temporary one, and run this again: finished stages are saved"
            )
        cause = cause.__cause__ or cause.__context__
    return error


def configure(folder: str | Path, *, verbose: bool = False) -> None:
    """Set Prefect's environment; call it before Prefect is imported. The user's own settings stay.

    Without a configured API, the server of ``palimpsest up`` in the checkout is used. Its credentials are set, also if
    the user names that server, and those of our MLflow are set for the stages. Prefect's files stay in the checkout,
    its log lines appear in the terminal only with ``verbose``, and its telemetry is off.
    """
    if "PREFECT_HOME" not in os.environ and not (Path.home() / ".prefect" / "profiles.toml").exists():
        os.environ["PREFECT_HOME"] = str(Path(folder).absolute() / HOME)
    if "PREFECT_HOME" in os.environ:
        # A server that starts before Prefect was ever imported here does not make it.
        Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True, mode=0o700)
    # Imported here, as only a run that somebody watches needs the services.
    from dashboards.services.services import hand_over_passwords, running_services

    if not likely_configured():
        server = running_services(Path(folder)).get("prefect")
        if server is not None:
            os.environ["PREFECT_API_URL"] = f"{server.address}/api"
            bypass_proxy("127.0.0.1")
    if os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        # A user who may start our server with it may call one.
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
    """Whether the environment or a profile may name an API; cheap, and called before Prefect is imported."""
    if "PREFECT_API_URL" in os.environ:
        return True
    profiles = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect") / "profiles.toml"
    return profiles.exists() and "PREFECT_API_URL" in profiles.read_text(encoding="utf-8", errors="replace")


def configured_url() -> str | None:
    """The address of the API in the user's Prefect settings of any kind, or ``None``."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url


class TemporaryServer:
    """A Prefect server on the loopback interface, started through the warm server, which also ends it.

    Only this process has its password, ``USER:PASSWORD``.
    """

    def __init__(self, processes: Processes, folder: str | Path) -> None:
        """Start the server; ``wait`` returns when it answers."""
        from dashboards.services.services import environment_of, free_port, new_password

        self._log = Path(folder) / STATE_FOLDER / "logs" / "prefect-server.log"
        self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._log.unlink(missing_ok=True)
        self._port = free_port()
        self.password = f"palimpsest:{new_password()}"
        self._line = processes.start(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self._port)],
            self._log,
            {
                **environment_of("prefect", port=self._port, PREFECT_API_AUTH_STRING=self.password),
                "PREFECT_UI_ENABLED": "false",
                "PREFECT_LOGGING_LEVEL": "ERROR",
                "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
                **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNNEEDED},
            },
        )
        bypass_proxy("127.0.0.1")

    def wait(self) -> str:
        """Block until it answers and return its address; ``ResourceError`` if it does not start."""
        from dashboards.services.services import answers

        deadline = time.monotonic() + START_SECONDS
        while not answers("prefect", self._port):
            if select.select([self._line], [], [], 0)[0] or time.monotonic() > deadline:
                raise ResourceError(
                    f"Prefect's temporary server did not start; its output is in {str(self._log)!r}. Set "
                    "PREFECT_API_URL to use a server that is running, or run the stages with 'dvc repro'"
                )
            time.sleep(0.05)
        return f"http://127.0.0.1:{self._port}/api"


def bypass_proxy(host: str) -> None:
    """Exclude the host from a proxy that the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        present = os.environ.get(name, "")
        if host not in present.split(","):
            os.environ[name] = f"{present},{host}" if present else host
