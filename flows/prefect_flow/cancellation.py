"""Watches for a run's cancellation in Prefect's UI or API, and ends its stages then.

Prefect itself ends only runs that a worker or ``palimpsest serve`` has started, by ending their process; a run that was
started in a terminal has to look for itself.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from flows.runs.session import Session

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

LOOK_SECONDS = 2.0
"""How often the state of the flow run is asked for."""


@contextmanager
def cancellation_watched(session: Session) -> Iterator[None]:
    """Stop the session's stages when the flow run is cancelled while the block works. Only inside a flow run."""
    from prefect.runtime import flow_run

    if not session.shown or flow_run.id is None:
        yield
        return
    ended = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(session, UUID(flow_run.id), ended), name="cancellation watch", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join(LOOK_SECONDS)


def _watch(session: Session, flow_run_id: UUID, ended: threading.Event) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        while not ended.wait(LOOK_SECONDS):
            if _is_cancelled(client, flow_run_id):
                session.cancelled = True
                session.stop()
                return


def _is_cancelled(client: "SyncPrefectClient", flow_run_id: UUID) -> bool:
    import httpx
    from prefect.exceptions import PrefectException

    try:
        state = client.read_flow_run(flow_run_id).state
    except (httpx.HTTPError, PrefectException):
        # A server that does not answer for a moment cancels nothing; the tasks find out if it stays away.
        return False
    return state is not None and (state.is_cancelling() or state.is_cancelled())
