"""The Prefect flow of the experiment: one task per stage, along the edges of DVC's graph.

Prefect decides when and where a stage runs, DVC whether its command does. Prefect's own result cache is off, since
its cache keys know neither our code nor the data.
"""

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from flows.executor import STOPPED, Observer, Outcome, State
from flows.plan import Action, Plan, enumeration
from tasks.errors import StageError


@dataclass
class Session:
    """What a flow run works with: the plan, a way to run a stage, and who watches."""

    plan: Plan
    run_stage: Callable[[str], Outcome]
    parallel_stages: int
    observer: Observer = lambda _name, _outcome: None
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set from outside to start no further stage."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """What became of every stage; complete when the flow run has ended."""


_session: ContextVar[Session] = ContextVar("session")


@contextmanager
def session_open(session: Session) -> Iterator[Session]:
    """Make the session the one that ``experiment`` works with inside this block."""
    token = _session.set(session)
    try:
        yield session
    finally:
        _session.reset(token)


@task(name="stage", cache_policy=NO_CACHE, persist_result=False, retries=0, log_prints=False)
def stage(name: str) -> str:
    """Run one stage through DVC; the state is the result, and a failed stage is a failed task.

    The exception holds the one line that may be shown; logs of the stage stay on this machine.
    """
    session = _session.get()
    outcome = session.run_stage(name)
    session.outcomes[name] = outcome
    if outcome.state is State.FAILED:
        raise StageError(f"stage {name!r} failed: {outcome.error}")
    return outcome.state.value


@flow(name="experiment", persist_result=False, log_prints=False, validate_parameters=False)
def experiment() -> dict[str, int]:
    """Run every stage of the open session's plan that is not known to be unchanged; counts per state.

    A stage starts when everything upstream of it is done, those with the longest chain behind them first. A failed
    stage stops what depends on it and nothing else. Raises ``StageError`` at the end where a stage failed.
    """
    session = _session.get(None)
    if session is None:
        raise StageError("the flow 'experiment' has no session to work in; start it with 'palimpsest run'")
    Scheduler(session).run()
    failed = [name for name, outcome in session.outcomes.items() if outcome.state is State.FAILED]
    if failed:
        raise StageError(f"{len(failed)} of {len(session.outcomes)} stages failed: {enumeration(failed)}")
    states = [outcome.state for outcome in session.outcomes.values()]
    return {state.value: states.count(state) for state in State}


def run_experiment(session: Session) -> None:
    """Run the flow; outcomes are in ``session.outcomes`` also where stages failed or were skipped.

    Raises what kept Prefect itself from doing its work, never for a failed stage.
    """
    runner: Any = ThreadPoolTaskRunner(max_workers=session.parallel_stages)
    with session_open(session):
        try:
            experiment.with_options(task_runner=runner)()
        except StageError:
            if not any(outcome.state is State.FAILED for outcome in session.outcomes.values()):
                raise


class Scheduler:
    """Submits stages to Prefect when they are ready.

    Prefect would wait for a task's inputs on one of its worker threads, so that waiting stages would keep ready ones
    from running; therefore a stage is submitted only when its inputs are done.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._graph = session.plan.graph
        self._downstream = self._graph.downstream()
        self._chains = self._graph.longest_chains()
        self._order = {name: place for place, name in enumerate(self._graph.nodes)}
        self._open_inputs = {name: len(node.upstream) for name, node in self._graph.nodes.items()}
        self._ready: list[tuple[int, int, str]] = []
        self._futures: dict[str, PrefectFuture[Any]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()

    def run(self) -> None:
        """Until every stage has an outcome."""
        for name, count in self._open_inputs.items():
            if count == 0:
                self._make_ready(name)
        running: set[str] = set()
        while self._ready or running:
            while self._ready and len(running) < self._session.parallel_stages:
                _, _, name = heapq.heappop(self._ready)
                outcome = self._without_running(name)
                if outcome is None:
                    running.add(name)
                    self._submit(name)
                else:
                    self._conclude(outcome)
            if running:
                name = self._ended.get()
                running.remove(name)
                self._conclude(self._outcome_of(name))

    def _make_ready(self, name: str) -> None:
        heapq.heappush(self._ready, (-self._chains[name], self._order[name], name))

    def _without_running(self, name: str) -> Outcome | None:
        """The outcome of a stage that need not or must not run, else ``None``."""
        upstream = [self._session.outcomes[above] for above in self._graph.nodes[name].upstream]
        lost = [outcome.name for outcome in upstream if outcome.state in (State.FAILED, State.SKIPPED)]
        if lost:
            return Outcome(name, State.SKIPPED, error=f"{enumeration(lost)} did not finish")
        planned = self._session.plan.stages[name]
        if planned.action is Action.UNCHANGED:
            return Outcome(name, State.UNCHANGED)
        if planned.action is Action.PERHAPS and all(outcome.state is State.UNCHANGED for outcome in upstream):
            return Outcome(name, State.UNCHANGED)
        if self._session.stopped.is_set():
            return Outcome(name, State.SKIPPED, error=STOPPED)
        return None

    def _submit(self, name: str) -> None:
        self._session.observer(name, None)
        node = self._graph.nodes[name]
        waits = [self._futures[above] for above in node.upstream if above in self._futures]
        future = stage.with_options(name=node.step, task_run_name=name).submit(name, return_state=False, wait_for=waits)
        self._futures[name] = future
        future.add_done_callback(lambda _: self._ended.put(name))

    def _outcome_of(self, name: str) -> Outcome:
        outcome = self._session.outcomes.get(name)
        if outcome is not None:
            return outcome
        # The task never reached its own code: Prefect lost its API, or an automation cancelled it.
        self._futures[name].wait()
        state = self._futures[name].state
        return Outcome(name, State.FAILED, error=f"Prefect did not run it: the task ended as {state.name!r}")

    def _conclude(self, outcome: Outcome) -> None:
        self._session.outcomes[outcome.name] = outcome
        self._session.observer(outcome.name, outcome)
        for name in self._downstream[outcome.name]:
            self._open_inputs[name] -= 1
            if self._open_inputs[name] == 0:
                self._make_ready(name)
