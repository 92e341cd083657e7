"""The record that Prefect keeps of a run that was killed, or could not report its end: it would stay "running" for
ever, so the next run in the same folder ends it.

Every flow run has a note in the checkout and holds a lock on it as long as its process lives. A note that nobody holds
is of a run that is over, whatever Prefect has of it. A run of a deployment is noted by its id; any other run before
Prefect is asked for it, and so by a name of its own: where the answer is lost, nobody knows the id.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from filelock import lock_descriptor

from flows.checkout.run_lock import STATE_FOLDER

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

FOLDER = Path(STATE_FOLDER) / "flow_runs"
"""Notes, each named by the id of its flow run, or by the flow run's name."""
FLOW = "experiment"
"""Name of the flow in Prefect."""
PENDING_SECONDS = 120.0
"""A worker that has accepted a run starts its process within seconds; after this time it is taken to be dead."""

_held: dict[str, int] = {}


def new_flow_run_name() -> str:
    """A name that no other flow run has."""
    return f"{FLOW}-{uuid4().hex[:12]}"


def note_flow_run(root: Path, name: str) -> None:
    """Note a flow run of this process by its id, or by its name from ``new_flow_run_name``; its lock ends with the
    process, and is not inherited by those it starts."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under its name only when it is locked, so that no other run takes it for one that nobody holds.
    unlocked = folder / f".{name}"
    handle = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    lock_descriptor(handle)
    os.rename(unlocked, folder / name)
    _held[name] = handle


def forget_flow_runs(root: Path) -> None:
    """Remove the notes of this process: Prefect has recorded the ends of its flow runs."""
    while _held:
        name, handle = _held.popitem()
        (root / FOLDER / name).unlink(missing_ok=True)
        os.close(handle)


def abandoned_flow_runs(root: Path) -> list[str]:
    """Notes of flow runs of this checkout whose processes are gone and whose ends Prefect may not know."""
    with _abandoned_notes(root) as notes:
        return list(notes)


def end_abandoned_flow_runs(root: Path) -> None:
    """Set every abandoned flow run to crashed where Prefect takes it to be going on, and remove its note.

    A server that does not know one is another server. Raises ``httpx.HTTPError`` where the server does not answer as it
    should; the notes stay.
    """
    from prefect.client.orchestration import get_client

    with _abandoned_notes(root) as notes:
        if not notes:
            return
        with get_client(sync_client=True) as client:
            for name, path in notes.items():
                for run in _runs_noted(client, name):
                    if run.state is None or not run.state.is_final():
                        _crash(client, run.id, "its process was killed, or could not report its end")
                path.unlink()


def _runs_noted(client: "SyncPrefectClient", name: str) -> "list[FlowRun]":
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterName

    try:
        noted = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(name)]))
    except ValueError:
        noted = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
    return client.read_flow_runs(flow_run_filter=noted)


def end_runs_that_never_started(deployment: UUID) -> None:
    """Set runs of the deployment to crashed that a worker accepted and did not start, because it was killed.

    No other worker would take them, and they would count for the deployment's limit of runs at once. Raises
    ``httpx.HTTPError`` as above.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType

    pending = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PENDING]))
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(
            flow_run_filter=FlowRunFilter(state=pending),
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        ):
            if run.state is None or run.state.timestamp is None:
                continue
            age = datetime.now(run.state.timestamp.tzinfo) - run.state.timestamp
            if age > timedelta(seconds=PENDING_SECONDS):
                _crash(client, run.id, "its worker was killed before it had started it")


def _crash(client: "SyncPrefectClient", number: UUID, message: str) -> None:
    from prefect.states import Crashed

    state: Any = Crashed(message=message)
    client.set_flow_run_state(number, state, force=True)


@contextmanager
def _abandoned_notes(root: Path) -> Iterator[dict[str, Path]]:
    """Notes that nobody holds, held inside the block, so that two runs do not end the same one."""
    found: dict[str, Path] = {}
    handles = []
    try:
        for path in sorted((root / FOLDER).glob("[!.]*")):
            with suppress(FileNotFoundError):
                handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                handles.append(handle)
                if lock_descriptor(handle, blocking=False):
                    found[path.name] = path
        yield found
    finally:
        for handle in handles:
            os.close(handle)
