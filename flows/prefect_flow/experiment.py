"""The Prefect flow of the experiment: one task per stage, along the edges of DVC's graph.

Prefect decides when and where a stage runs, DVC whether its command does. Prefect's own result cache is off, since
its cache keys know neither our code nor the data.
"""

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Annotated, Any
from uuid import UUID

import httpx
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import CancelledRun, PrefectException
from prefect.flow_engine import run_flow
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled, Completed, Pending
from prefect.states import State as PrefectState
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.utilities.callables import get_call_parameters
from pydantic import Field

from flows.graph.plan import Action, enumeration
from flows.prefect_flow.abandoned_flow_run import (
    FLOW,
    end_abandoned_flow_runs,
    end_runs_that_never_started,
    new_flow_run_name,
    note_flow_run,
)
from flows.prefect_flow.run_artifacts import RunArtifacts
from flows.runs.session import Session, open_session, session_open
from flows.stages.executor import STOPPED, UNFINISHED, Outcome, State
from flows.stages.supervisor import CLUSTER
from tasks.errors import StageError


@contextmanager
def cancellation_watched(session: Session) -> Iterator[None]:
    """Stop the session's stages when the flow run is cancelled while the block works. Only inside a flow run."""
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
    with get_client(sync_client=True) as client:
        while not ended.wait(LOOK_SECONDS):
            if _is_cancelled(client, flow_run_id):
                session.cancelled = True
                session.stop()
                return


def _is_cancelled(client: SyncPrefectClient, flow_run_id: UUID) -> bool:
    try:
        state = client.read_flow_run(flow_run_id).state
    except (httpx.HTTPError, PrefectException):
        # A server that does not answer for a moment cancels nothing; the tasks find out if it stays away.
        return False
    return state is not None and (state.is_cancelling() or state.is_cancelled())


Choice = Annotated[str, Field(pattern=r"^[^=\s]+=[^=\s]+$", examples=["technique=entity_tagger,allow_list"])]
Override = Annotated[str, Field(pattern=r"^[^=\s]+=.*$", examples=["filling.top_k.k=20"])]
Jobs = Annotated[int, Field(ge=1)]


LOOK_SECONDS = 2.0
"""How often a run looks whether it was cancelled."""
SHOW_SECONDS = 10.0
"""How often the progress of a run is shown while no stage ends."""


class PassingFailure(StageError):
    """A stage failed of something that can pass; Prefect tries it again."""


@task(name="stage", cache_policy=NO_CACHE, persist_result=False, retries=0, log_prints=False)
def stage(name: str) -> str:
    """Run one stage through DVC; the state is the result, and a failed stage is a failed task.

    The exception holds the one line that may be shown; logs of the stage stay on this machine.
    """
    session = open_session()
    assert session is not None  # the flow has opened it
    session.attempts[name] += 1
    outcome = replace(session.run_stage(name), attempts=session.attempts[name])
    session.outcomes[name] = outcome
    if name in session.ran_on:
        get_run_logger().info(session.ran_on[name])
    if outcome.state is State.FAILED:
        kind = PassingFailure if outcome.may_pass and not session.stopped.is_set() else StageError
        raise kind(f"stage {name!r} failed: {outcome.error}")
    return outcome.state.value


@flow(name=FLOW, persist_result=False, log_prints=False)
def experiment(
    stages: list[str] = [],  # noqa: B006 - Prefect reads the default for its form; it is never changed
    only: list[Choice] = [],  # noqa: B006 - the same
    overrides: list[Override] = [],  # noqa: B006 - the same
    jobs: Jobs | None = None,
    new_data_only: bool = False,
) -> dict[str, int] | PrefectState:
    """Run every stage of the experiment that changed, in the folder of the project; counts per state.

    A stage starts when everything upstream of it is done, those with the longest chain behind them first. A failed
    stage stops what depends on it and nothing else. Raises ``StageError`` at the end where a stage failed.

    Args:
        stages: Stages, steps or patterns with * and ?; what they depend on is included. Empty: all.
        only: Stages with these values of a dimension, such as technique=entity_tagger. Empty: all.
        overrides: Changes to params.yaml for this run, such as filling.top_k.k=20. Recorded as a DVC experiment.
        jobs: Stages at once. Empty: resources.parallel_stages of params.yaml.
        new_data_only: Do nothing unless a source of data changed since the last run.
    """
    session = open_session()
    if session is not None:
        return _work(session)
    from flows.prefect_flow.deployed_run import deployed_session

    with deployed_session(stages, only, overrides, jobs, new_data_only=new_data_only) as session:
        if session is None:
            return Completed(name="NothingNew", message="no source of data has changed")
        return _work(session)


def _work(session: Session) -> dict[str, int] | PrefectState:
    """Bring every stage to an outcome; the flow run's result or state."""
    if flow_run.id is not None:
        # As Prefect itself names it; reports record it.
        session.stage_environment["PREFECT__FLOW_RUN_ID"] = str(flow_run.id)
    if session.tag_limits:
        # What params.yaml says wins over a limit that the server has already.
        with get_client(sync_client=True) as client:
            for tag, limit in session.tag_limits.items():
                client.create_concurrency_limit(tag=tag, concurrency_limit=limit)
    if session.shown and flow_run.id is not None:
        _close_earlier_records()
    with cancellation_watched(session), session.cluster as cluster:
        if cluster is not None:
            session.stage_environment[CLUSTER] = cluster.address
            session.ran_on = cluster.ran_on
        artifacts = RunArtifacts(session) if session.shown else None
        Scheduler(session).run(artifacts.show_progress if artifacts else lambda: None)
    if artifacts:
        artifacts.show_results()
    if session.cancelled:
        return Cancelled(message="stages that were finished are kept; run it again to go on")
    failed = [one for one in session.outcomes.values() if one.state is State.FAILED]
    if failed:
        reasons = enumeration(f"{one.name} ({one.error})" for one in failed)
        raise StageError(f"{len(failed)} of {len(session.outcomes)} stages failed: {reasons}")
    states = [outcome.state for outcome in session.outcomes.values()]
    return {state.value: states.count(state) for state in State}


def _close_earlier_records() -> None:
    """End what Prefect takes to be going on and is not; where the server is busy, the next run does it."""
    with suppress(httpx.HTTPError):
        end_abandoned_flow_runs(Path.cwd())
        if deployment.id is not None:
            end_runs_that_never_started(UUID(str(deployment.id)))


def run_experiment(session: Session) -> None:
    """Run the flow; outcomes are in ``session.outcomes`` also where stages failed or were skipped.

    Raises what kept Prefect itself from doing its work, never for a failed stage.
    """
    runner: Any = ThreadPoolTaskRunner(max_workers=session.parallel_stages)
    flow = experiment.with_options(task_runner=runner)
    name = new_flow_run_name()
    if session.shown:
        note_flow_run(Path.cwd(), name)
    with get_client(sync_client=True) as client:
        given = get_call_parameters(flow.fn, (), dict(session.parameters))
        made = client.create_flow_run(flow, name, flow.serialize_parameters(given), state=Pending())
    with session_open(session):
        try:
            run_flow(flow, made)
        except CancelledRun:
            if not session.cancelled:
                raise
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

    def run(self, show_progress: Callable[[], None] = lambda: None) -> None:
        """Until every stage has an outcome. Calls ``show_progress`` whenever a stage has ended, and now and then."""
        for name, count in self._open_inputs.items():
            if count == 0:
                self._make_ready(name)
        running: set[str] = set()
        while self._ready or running:
            while self._ready and len(running) < self._session.parallel_stages:
                *_, name = heapq.heappop(self._ready)
                outcome = self._without_running(name)
                if outcome is not None:
                    self._conclude(outcome)
                else:
                    running.add(name)
                    self._submit(name)
            if running:
                ended = self._next_ended(show_progress)
                running.remove(ended)
                self._conclude(self._outcome_of(ended))
                show_progress()

    def _next_ended(self, show_progress: Callable[[], None]) -> str:
        while True:
            try:
                return self._ended.get(timeout=SHOW_SECONDS)
            except Empty:
                show_progress()

    def _make_ready(self, name: str) -> None:
        heapq.heappush(self._ready, (-self._chains[name], self._order[name], name))

    def _without_running(self, name: str) -> Outcome | None:
        """The outcome of a stage that need not or must not run, else ``None``."""
        upstream = [self._session.outcomes[above] for above in self._graph.nodes[name].upstream]
        lost = [outcome.name for outcome in upstream if outcome.state in (State.FAILED, State.SKIPPED)]
        if lost:
            return Outcome(name, State.SKIPPED, error=f"{enumeration(lost)} {UNFINISHED}")
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
        prepared = stage.with_options(
            name=node.step,
            task_run_name=name,
            tags=set(self._session.tags_of(node.step)),
            retries=len(self._session.retry_delays),
            retry_delay_seconds=list(self._session.retry_delays),
            retry_condition_fn=lambda _task, _run, state: isinstance(state.data, PassingFailure),
        )
        future = prepared.submit(name, return_state=False, wait_for=waits)
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
