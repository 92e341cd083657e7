"""The record that Prefect keeps of a run that was killed, or could not report its end: it would stay "running" for
ever, so the next run in the same folder ends it.

Every flow run has a note in the checkout and holds a lock on it as long as its process lives. A note that nobody holds
is of a run that is over, whatever Prefect has of it. Before Prefect has said which run it is, the note says only that
one is being made: where the answer was lost, Prefect may have a run whose id nobody knows, and which waits for ever.
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

FOLDER = Path(STATE_FOLDER) / "flow_runs"
"""Notes, each named by the id of its flow run."""
FLOW = "experiment"
"""Name of the flow in Prefect."""
PENDING_SECONDS = 120.0
"""A worker that has accepted a run starts its process within seconds; after this time it is taken to be dead."""

STARTING_SECONDS = 2.0
"""A run without a deployment begins right after Prefect has recorded it; one that waits for so long never will."""
_STARTING = "starting-"

_held: dict[str, int] = {}


def note_flow_run(root: Path, number: UUID) -> None:
    """Note a flow run of this process; its lock ends with the process, and is not inherited by those it starts."""
    if str(number) not in _held:
        _note(root, str(number))
    for name in [name for name in _held if name.startswith(_STARTING)]:
        _forget(root, name)


def note_start(root: Path) -> None:
    """Note that Prefect is about to be asked for a flow run without a deployment; ``note_flow_run`` takes it back."""
    _note(root, f"{_STARTING}{uuid4()}")


def _note(root: Path, name: str) -> None:
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under its name only when it is locked, so that no other run takes it for one that nobody holds.
    unlocked = folder / f".{name}"
    handle = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    lock_descriptor(handle)
    os.rename(unlocked, folder / name)
    _held[name] = handle


def _forget(root: Path, name: str) -> None:
    handle = _held.pop(name)
    with suppress(FileNotFoundError):
        (root / FOLDER / name).unlink()
    os.close(handle)


def forget_flow_runs(root: Path) -> None:
    """Remove the notes of this process: Prefect has recorded the ends of its flow runs."""
    for name in list(_held):
        _forget(root, name)


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
    from prefect.exceptions import ObjectNotFound

    with _abandoned_notes(root) as notes:
        if not notes:
            return
        with get_client(sync_client=True) as client:
            if any(name.startswith(_STARTING) for name in notes):
                _end_waiting(client, None, STARTING_SECONDS, "whoever asked for it did not learn that it was made")
            for name, path in notes.items():
                with suppress(ObjectNotFound):
                    state = None if name.startswith(_STARTING) else client.read_flow_run(UUID(name)).state
                    if state is not None and not state.is_final():
                        _crash(client, UUID(name), "its process was killed, or could not report its end")
                path.unlink()


def end_runs_that_never_started(deployment: UUID) -> None:
    """Set runs of the deployment to crashed that a worker accepted and did not start, because it was killed.

    No other worker would take them, and they would count for the deployment's limit of runs at once. Raises
    ``httpx.HTTPError`` as above.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        _end_waiting(client, deployment, PENDING_SECONDS, "its worker was killed before it had started it")


def _end_waiting(client: "SyncPrefectClient", deployment: UUID | None, seconds: float, message: str) -> None:
    """Set runs of the deployment, or of the flow without any, to crashed that have been pending for so long."""
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowFilter,
        FlowFilterName,
        FlowRunFilter,
        FlowRunFilterDeploymentId,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType

    pending = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PENDING]))
    if deployment is not None:
        found = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(state=pending),
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        )
    else:
        found = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[FLOW])),
            flow_run_filter=FlowRunFilter(state=pending, deployment_id=FlowRunFilterDeploymentId(is_null_=True)),
        )
    for run in found:
        if run.state is None or run.state.timestamp is None:
            continue
        age = datetime.now(run.state.timestamp.tzinfo) - run.state.timestamp
        if age > timedelta(seconds=seconds):
            _crash(client, run.id, message)


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
