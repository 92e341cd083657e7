"""What a flow run works with, handed to its tasks without going through Prefect."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from flows.graph.plan import Plan
from flows.stages.executor import Observer, Outcome


def _no_tags(_step: str) -> Sequence[str]:
    return ()


def nobody(_name: str, _outcome: Outcome | None) -> None:
    """An observer that does nothing."""


@dataclass
class Session:
    """The plan, a way to run a stage, limits, and who watches."""

    plan: Plan
    run_stage: Callable[[str], Outcome]
    parallel_stages: int
    observer: Observer = nobody
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set from outside to start no further stage."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """What became of every stage; complete when the flow run has ended."""
    trusted_remote: str | None = None
    """Name of the DVC remote through which clones may share what is private."""
    exchange: Callable[[Sequence[str]], tuple[int, str]] = lambda _arguments: (0, "")
    """Runs ``flows.sharing.exchange`` with arguments; its exit status, and one line where that is not 0."""
    stop_stages: Callable[[], None] = lambda: None
    """Ends the stages that run, within seconds."""
    tags_of: Callable[[str], Sequence[str]] = _no_tags
    """Prefect tags of a step."""
    tag_limits: Mapping[str, int] = field(default_factory=dict)
    """How many stages with a tag run at once."""
    retry_delays: Sequence[float] = ()
    """Seconds before each further try of a stage whose failure can pass."""
    shown: bool = False
    """Whether somebody can look at the run in Prefect and cancel it there: its server outlives the run."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The flow's parameters as Prefect records them."""
    stage_environment: dict[str, str] = field(default_factory=dict)
    """What stages find in their environment beside the run's own."""
    attempts: Counter[str] = field(default_factory=Counter)
    cancelled: bool = False
    """Whether somebody cancelled the run in Prefect."""

    def stop(self) -> None:
        """Start no further stage and end those that run."""
        self.stopped.set()
        self.stop_stages()


_session: ContextVar[Session] = ContextVar("session")


def open_session() -> Session | None:
    """The session of this run, or ``None`` where there is none yet."""
    return _session.get(None)


@contextmanager
def session_open(session: Session) -> Iterator[Session]:
    """Make the session the one that the flow and its tasks work with inside this block."""
    token = _session.set(session)
    try:
        yield session
    finally:
        _session.reset(token)
