"""What a flow run works with, handed to its tasks without going through Prefect; and what a clone does in it."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from flows.checkout.run_lock import STATE_FOLDER
from flows.graph.plan import Action, Plan
from flows.runs.preparation import retry_delays, tags, time_limit
from flows.stages.executor import Executor, Observer, Outcome
from flows.stages.processes import Processes
from flows.stages.warm_commands import ENOUGH, arguments_of
from tasks.settings.resources import ResourceSettings


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
    tags_of: Callable[[str], Sequence[str]] = lambda _step: ()
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


def make_session(
    folder: Path,
    plan: Plan,
    processes: Processes | None,
    resources: ResourceSettings,
    *,
    parallel_stages: int,
    stopped: threading.Event,
    observer: Observer = nobody,
    outcomes: dict[str, Outcome] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Session:
    """A session that runs the plan's stages in ``folder`` through DVC, with the limits of ``resources``.

    Without ``processes`` it can bring only a plan to its end in which nothing is to be done. ``outcomes`` is filled
    while the run works.
    """
    session = Session(
        plan,
        _nothing_runs,
        parallel_stages,
        observer,
        stopped,
        {} if outcomes is None else outcomes,
        trusted_remote=resources.trusted_remote,
        tags_of=lambda step: tags(resources, step),
        tag_limits={tag: shared.limit for tag, shared in resources.concurrency.items()},
        retry_delays=retry_delays(resources),
        parameters=parameters or {},
    )
    if processes is not None:
        executor = Executor(
            processes,
            folder,
            lambda stage: time_limit(resources, plan.graph.nodes[stage].step),
            session.stage_environment,
        )
        session.run_stage, session.stop_stages = executor.run, executor.stop
        session.exchange = _exchange_in(processes, folder, stopped, resources.trusted_remote)
    return session


def prepare(processes: Processes, plan: Plan) -> None:
    """Let the supervisor import now what the stages of this plan need; after whatever must start before."""
    to_do = (name for name, stage in plan.stages.items() if stage.action is not Action.UNCHANGED)
    commands = [name for name in to_do if arguments_of(plan.graph.nodes[name].command) is not None]
    if len(commands) >= ENOUGH:
        processes.prepare_commands()
    else:
        processes.prepare_dvc()


def _exchange_in(
    processes: Processes, folder: Path, stopped: threading.Event, remote: str | None
) -> Callable[[Sequence[str]], tuple[int, str]]:
    """A function that runs ``flows.sharing.exchange`` with a remote in a process of its own and ends it when the run is
    stopped."""

    def exchange(asked: Sequence[str]) -> tuple[int, str]:
        what, *rest = asked
        log = folder / STATE_FOLDER / "logs" / f"exchange-{uuid.uuid4().hex[:8]}.log"
        process = processes.start_module("flows.sharing.exchange", [what, str(remote), *rest], log)
        while (status := process.wait(0.5)) is None:
            if stopped.is_set():
                processes.stop(process)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        log.unlink(missing_ok=True)
        errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
        return status, errors[-1] if errors else f"the exchange ended with status {status}"

    return exchange


def _nothing_runs(name: str) -> Outcome:
    raise RuntimeError(f"stage {name!r} was to run although the plan has nothing to do")


class Role(StrEnum):
    """What a clone does in an experiment."""

    ALONE = "alone"
    LEAD = "lead"
    JOIN = "join"


class Alone:
    """What the scheduler of a run asks before and after each stage; one clone does everything."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._compute = session.run_stage

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def may_start(self, name: str) -> bool:
        """Whether the stage can be started here now; asked again until it can, or is refused."""
        return True

    def refusal(self) -> str | None:
        """Why nothing further will be started here, or ``None``."""
        return None

    def run(self, name: str) -> Outcome:
        """Bring the stage to an outcome; in a thread of its own."""
        return self._compute(name)

    def ended(self, outcome: Outcome) -> None:
        """Told when a stage that was started has ended for good."""

    def order(self, name: str) -> int:
        """Stages with smaller numbers are started first."""
        return 0
