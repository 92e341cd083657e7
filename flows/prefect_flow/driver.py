"""Carries a plan out: the supervisor, the Prefect API and the flow of one run, and an orderly end on a signal."""

import contextvars
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from flows.graph.plan import Action, Plan
from flows.prefect_flow import prefect_api
from flows.prefect_flow.abandoned_flow_run import end_abandoned_flow_runs, forget_flow_runs
from flows.runs.session import Session, make_session, prepare
from flows.stages.executor import STOPPED, Finish, Observer, Outcome, State
from flows.stages.processes import Processes
from tasks.errors import ResourceError
from tasks.files.private_folders import close_private_folders
from tasks.settings.resources import ResourceSettings

STOP_SECONDS = 8.0
"""How long stages and Prefect have after SIGINT or SIGTERM until the run ends without them."""


def drive(
    folder: Path,
    plan: Plan,
    *,
    resources: ResourceSettings,
    parallel_stages: int,
    observer: Observer,
    parameters: Mapping[str, Any] | None = None,
    inherited: Sequence[int] = (),
) -> Finish:
    """Run the plan's stages and return what became of each.

    ``parameters`` are the flow's, for Prefect's record. SIGINT, SIGTERM and a cancellation in Prefect stop running
    stages within seconds; what was finished stays finished. Only from the main thread.
    Raises what kept the flow from being run at all.
    """
    close_private_folders(folder)
    prefect_api.configure(folder)
    errors: list[BaseException] = []
    # The third signal ends the process at once; the supervisor then stops what runs.
    with (
        received_signals(2, lambda number: os._exit(128 + number)) as received,
        Processes(folder, inherited=inherited) as processes,
    ):
        session = make_session(
            folder,
            plan,
            processes,
            resources,
            parallel_stages=parallel_stages,
            observer=observer,
            parameters=parameters,
        )
        work = _flow_run(errors, folder, session, processes)
        deadline = float("inf")
        while work.is_alive() and time.monotonic() < deadline:
            work.join(0.1)
            if received and not session.stopped.is_set():
                session.stop()
            if session.stopped.is_set() and deadline == float("inf"):
                deadline = time.monotonic() + STOP_SECONDS
        abandoned = work.is_alive()
        warning = None
        if errors and not session.stopped.is_set():
            error = _explained(errors[0])
            if not isinstance(error, ResourceError) or len(session.outcomes) < len(plan.stages):
                raise error
            # Every stage was brought to its end: only Prefect's record of the run is incomplete.
            warning = str(error)
        outcomes = {name: session.outcomes.get(name) or _unfinished(name, plan) for name in plan.stages}
        return Finish(outcomes, received[0] if received else None, abandoned, session.cancelled, warning)


def _flow_run(errors: list[BaseException], folder: Path, session: Session, processes: Processes) -> threading.Thread:
    """The thread that Prefect works in; the main thread stays free for signals."""

    def work() -> None:
        try:
            # Importing Prefect takes a second, which the server's own start can use.
            server = None if prefect_api.likely_configured() else prefect_api.TemporaryServer(processes, folder)
            if prefect_api.configured_url() is not None and server is not None:
                server.stop()
                server = None
            elif prefect_api.configured_url() is None and server is None:
                server = prefect_api.TemporaryServer(processes, folder)
            prepare(processes, session)
            from prefect.settings import (
                PREFECT_API_AUTH_STRING,
                PREFECT_API_URL,
                PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
                PREFECT_LOGGING_TO_API_ENABLED,
                temporary_settings,
            )

            from flows.prefect_flow.experiment import run_experiment

            # Without a heartbeat, since joining its thread costs a second at the end of every flow run.
            settings: dict[Any, Any] = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
            if server is not None:
                settings |= {
                    PREFECT_API_URL: server.wait(),
                    PREFECT_API_AUTH_STRING: server.password,
                    PREFECT_LOGGING_TO_API_ENABLED: False,
                }
            session.shown = server is None
            with temporary_settings(settings):
                run_experiment(session)
            forget_flow_runs(folder)
        except BaseException as error:  # handed to the main thread, which raises it
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="flow", daemon=True)
    thread.start()
    return thread


def _explained(error: BaseException) -> BaseException:
    """A lost connection to Prefect's API is the user's to mend; anything else is raised as it is."""
    import httpx

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, httpx.TransportError):
            return ResourceError(
                f"Prefect's API does not answer ({type(cause).__name__}); see that its server runs, or unset "
                "PREFECT_API_URL to use a temporary one, and run this again: finished stages are kept"
            )
        if isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code >= 500:
            return ResourceError(
                f"Prefect's server reports an error of its own (status {cause.response.status_code}); see that its "
                "database runs, and run this again: finished stages are kept"
            )
        if isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code in (401, 403):
            return ResourceError(
                "Prefect's server asks who is there: set PREFECT_API_AUTH_STRING=USER:PASSWORD in the environment"
            )
        cause = cause.__cause__ or cause.__context__
    return error


def close_abandoned_records(folder: Path) -> str | None:
    """Where a run has nothing to do: end what Prefect still takes to be going on here; a warning where it cannot."""
    prefect_api.configure(folder)
    if prefect_api.configured_url() is None:
        return None
    import httpx

    try:
        end_abandoned_flow_runs(folder)
    except httpx.HTTPError as error:
        return f"Prefect may show an earlier run as going on; the next run ends it: {_explained(error)}"
    return None


def _unfinished(name: str, plan: Plan) -> Outcome:
    if plan.stages[name].action is Action.UNCHANGED:
        return Outcome(name, State.UNCHANGED)
    return Outcome(name, State.SKIPPED, error=STOPPED)


@contextmanager
def received_signals(borne: int, end: Callable[[int], object]) -> Iterator[list[int]]:
    """Note SIGINT and SIGTERM instead of dying of them; ``end`` is called with each that comes after ``borne``."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > borne:
            end(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
