"""What a flow run works with, handed to its tasks without going through Prefect."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.graph.plan import Action, Plan
from flows.runs.preparation import retry_delays, tags, time_limit
from flows.stages.executor import Executor, Observer, Outcome
from flows.stages.processes import Processes
from flows.stages.warm_commands import ENOUGH, arguments_of
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from flows.cluster.cluster import Cluster


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
    cluster: AbstractContextManager["Cluster | None"] = field(default_factory=nullcontext)
    """Where the commands of stages run, if not here; entered by the flow."""
    ran_on: Mapping[str, str] = field(default_factory=dict)
    """Of each stage that ran on a node of the cluster, a line that names it."""
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
    observer: Observer = nobody,
    parameters: Mapping[str, Any] | None = None,
) -> Session:
    """A session that runs the plan's stages in ``folder`` through DVC, with the limits of ``resources``.

    Without ``processes`` it can bring only a plan to its end in which nothing is to be done.
    """
    session = Session(
        plan,
        _nothing_runs,
        parallel_stages,
        observer,
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
        if resources.cluster is not None:
            from flows.cluster.cluster import Cluster

            session.cluster = Cluster(resources, folder)
    return session


def prepare(processes: Processes, session: Session) -> None:
    """Let the supervisor import now what the stages of this run need; after whatever must start before."""
    plan = session.plan
    to_do = (name for name, stage in plan.stages.items() if stage.action is not Action.UNCHANGED)
    commands = [name for name in to_do if arguments_of(plan.graph.nodes[name].command) is not None]
    if len(commands) >= ENOUGH and isinstance(session.cluster, nullcontext):
        processes.prepare_commands()
    else:
        processes.prepare_dvc()


def _nothing_runs(name: str) -> Outcome:
    raise RuntimeError(f"stage {name!r} was to run although the plan has nothing to do")
