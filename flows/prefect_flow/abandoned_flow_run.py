"""The record that Prefect keeps of a run that was killed: it would stay "running" for ever, so the next run ends it.

Every run notes its flow run in the checkout. Whoever holds the lock of runs knows that an earlier one is dead.
"""

from pathlib import Path
from uuid import UUID

from flows.checkout.run_lock import STATE_FOLDER

FILE = Path(STATE_FOLDER) / "flow_run"
"""Id of the last flow run of this checkout."""


def end_abandoned_flow_run(present: UUID) -> None:
    """Set the last flow run of this checkout to crashed where Prefect takes it to be running, and note the present one.

    Inside a flow run, in the folder of the project. A server that does not know the last one is another server.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Crashed

    try:
        last = UUID(FILE.read_text(encoding="ascii").strip())
    except (FileNotFoundError, ValueError):
        last = present
    FILE.write_text(f"{present}\n", encoding="ascii")
    if last == present:
        return
    with get_client(sync_client=True) as client:
        try:
            state = client.read_flow_run(last).state
            if state is not None and (state.is_running() or state.is_cancelling()):
                client.set_flow_run_state(last, Crashed(message="its process was killed"), force=True)
        except (ObjectNotFound, httpx.HTTPStatusError):
            return
