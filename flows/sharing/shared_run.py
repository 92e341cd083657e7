"""What a clone that leads and one that joins have in common."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from flows.checkout.run_lock import STATE_FOLDER
from flows.runs.preparation import say_on_stderr
from flows.runs.session import Session
from flows.sharing.board import Board
from flows.sharing.claims import Claims
from flows.sharing.exchange import NOT_THERE
from flows.sharing.shared_stages import SharedStages
from flows.stages.executor import Outcome, State, log_name
from tasks.errors import ResourceError

LOOK_SECONDS = 2.0
"""How often a clone looks whether it can go on, while others have what it waits for."""
LEAD_SECONDS = 180.0
"""How long a clone that joins waits for a run to join, and a second one that leads for the first one's lease."""
LEADING = ":lead"
"""The claim that says that a run leads and is alive."""
LOST = (State.FAILED, State.SKIPPED)


class SharedRun(AbstractContextManager[Any]):
    """Claims shared stages, looks on the remote for their results, and pushes what was computed here."""

    def __init__(self, session: Session, flow_run: UUID, state: str) -> None:
        self._session = session
        self._compute = session.run_stage
        self._flow_run = flow_run
        self._board = Board(state)
        self._claims = Claims(f"palimpsest-{state}-")
        self._stages = SharedStages()
        self._stack = ExitStack()

    def __enter__(self) -> Any:
        self._stack.enter_context(self._claims)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def refusal(self) -> str | None:
        """Never."""
        return None

    def may_start(self, name: str) -> bool:
        """A shared stage when nobody else has it."""
        return name not in self._stages.shared or self._claims.take(name)

    def order(self, name: str) -> int:
        """What only this clone can do comes first: the others may take the rest meanwhile."""
        return int(name in self._stages.shared)

    def ended(self, outcome: Outcome) -> None:
        """Give the claim back."""
        self._claims.release(outcome.name, done=outcome.state not in LOST)

    def run_shared(self, name: str) -> Outcome:
        """Restore the stage from the remote where somebody has computed it, else compute and push it."""
        started = time.monotonic()
        status, error = self._session.exchange(["fetch", name])
        if status not in (0, NOT_THERE):
            return not_exchanged(name, started, error)
        outcome = self._compute(name)
        if outcome.state in LOST or (status == 0 and outcome.state is not State.RAN):
            return outcome
        pushed, error = self._session.exchange(["push", name])
        return outcome if pushed == 0 else not_exchanged(name, started, error)


def wait_for(done: Callable[[], bool], stopped: threading.Event, what: str, otherwise: str) -> None:
    """Wait until it is done; ``ResourceError`` after ``LEAD_SECONDS`` (``otherwise``), or where the run is stopped."""
    deadline = time.monotonic() + LEAD_SECONDS
    told = False
    while not done():
        if not told:
            say_on_stderr(f"waiting up to {LEAD_SECONDS:.0f} seconds for {what}")
            told = True
        if time.monotonic() > deadline:
            raise ResourceError(otherwise)
        if stopped.wait(LOOK_SECONDS):
            raise ResourceError("the run was stopped before it had begun")


def exchange_file(stage: str) -> Path:
    """Where the outputs of a stage are told between this process and ``flows.sharing.exchange``."""
    return Path(STATE_FOLDER) / f"{log_name(stage)}.outputs.json"


def not_exchanged(name: str, started: float, error: str) -> Outcome:
    """The outcome of a stage whose results could not be told to the others, or taken from them."""
    reason = f"the DVC remote could not be used: {error}"
    return Outcome(name, State.FAILED, time.monotonic() - started, reason, may_pass=True)
