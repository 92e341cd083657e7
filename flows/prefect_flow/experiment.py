"""The Prefect flow of the experiment: one task per stage, along the edges of DVC's graph.

Prefect decides when and where a stage runs, DVC whether its command does. Prefect's own result cache is off, since
its cache keys know neither our code nor the data.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter
from queue import SimpleQueue
from typing import Annotated, Any
from uuid import UUID

import httpx
from prefect import Flow, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed
from prefect.states import State as PrefectState
from pydantic import Field

from flows.checkout.run_lock import FOLDER_VARIABLE
from flows.graph.graph import Action, enumeration, project_folder, steps_left
from flows.graph.plan import summary
from flows.graph.private_sources import changed_sources
from flows.runs.missing import refuse_missing
from flows.runs.preparation import Run, first_that_fits, prepared_run, retry_delays, tags
from flows.stages.executor import STOPPED, UNDONE, UNFINISHED, Outcome, State, run_stage
from flows.stages.processes import Processes, asking_shell
from flows.stages.warm_server import needs_pytorch
from tasks.errors import ParameterError, StageError

ENOUGH = 8
"""Number of commands that need PyTorch from which on a run saves more than the imports cost."""
LOOK_SECONDS = 2.0
"""Seconds between checks for a cancellation."""
Choice = Annotated[str, Field(pattern=r"^[^=\s]+=[^=\s]+$", examples=["technique=allow_list,every_tagger"])]
Override = Annotated[str, Field(pattern=r"^[^=\s]+=.*$", examples=["filling.top_k.k=20"])]
Jobs = Annotated[int, Field(ge=1)]
Result = dict[str, int] | PrefectState


@flow(name="experiment", persist_result=False, log_prints=False)
def experiment(
    stages: list[str] = [],  # noqa: B006 - Prefect reads the default for its form; it is never changed
    only: list[Choice] = [],  # noqa: B006 - the same
    overrides: list[Override] = [],  # noqa: B006 - the same
    jobs: Jobs | None = None,
    new_data_only: bool = False,
) -> Result:
    """Run every stage of the experiment that changed, in the folder of the project; counts per state.

    A stage starts when everything upstream of it is done, those with the longest chain after them first. A failed
    stage stops what depends on it and nothing else. Raises ``StageError`` at the end where a stage failed.

    Args:
        stages: Stages, steps or patterns with * and ?; what they depend on is included. Empty: all.
        only: Stages with these values of a dimension, such as technique=allow_list. Empty: all.
        overrides: Changes to params.yaml for this run, such as filling.top_k.k=20. Recorded as a DVC experiment.
        jobs: Stages at once. Empty: resources.parallel_stages of params.yaml.
        new_data_only: Do nothing unless a source of data changed since the last run.
    """
    logger = get_run_logger()
    folder = os.environ.get(FOLDER_VARIABLE, ".")
    with prepared_run(stages, only, overrides, jobs, logger.info, folder, partial(logger.info, "waiting: %s")) as run:
        logger.info(summary(run.plan))
        if new_data_only:
            changed = changed_sources(run.plan, run.root)
            if not changed:
                return Completed(name="NothingNew", message="no source of data has changed")
            logger.info("new data: %s", ", ".join(changed))
        refuse_missing(run.plan, run.root)
        with Processes(run.root, inherited=[run.lock]) as processes:
            return carry_out(run, processes, shown=True)


def flow_of(run: Run, processes: Processes, *, shown: bool) -> Flow[..., Result]:
    """The flow of ``palimpsest run``, which prepares its run before Prefect is imported; ``shown`` as below."""

    @flow(name="experiment", persist_result=False, log_prints=False)
    def of_command(stages: list[str], only: list[str], overrides: list[str], jobs: int) -> Result:
        return carry_out(run, processes, shown=shown)

    return of_command


def enter_worker_folder() -> dict[str, str]:
    """Enter the project's folder for a flow run and return it in Prefect's form; nothing is downloaded.

    Raises ``ParameterError`` if the variable is not set, ``StageError`` if it names a folder outside a project.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise ParameterError(
            f"{FOLDER_VARIABLE} is not set, so this worker has no project to work in; set it to the folder of its "
            "clone, in the worker's environment or in the job variables of its pool"
        )
    return {"directory": str(project_folder(folder).resolve())}


def carry_out(run: Run, processes: Processes, *, shown: bool) -> Result:
    """Bring every stage to an outcome; return the flow run's result or state.

    ``shown``: Prefect's server outlives the run, and somebody may cancel it there.
    """
    # As Prefect itself names it; reports record it.
    environment = {"PREFECT__FLOW_RUN_ID": str(flow_run.id)}
    with get_client(sync_client=True) as client:
        for tag, shared in run.resources.concurrency.items():
            # The value in params.yaml replaces the server's limit.
            client.create_concurrency_limit(tag=tag, concurrency_limit=shared.limit)
    with ExitStack() as stack:
        ran_on: dict[str, str] = {}
        if run.resources.cluster is not None:
            from flows.cluster.cluster import Cluster

            cluster = stack.enter_context(Cluster(run.resources, run.root))
            environment |= asking_shell(run.root, cluster.address)
            ran_on = cluster.ran_on
        elif _number_of_heavy_stages(run) >= ENOUGH:
            environment |= asking_shell(run.root, processes.address)

        def stop(how: str, number: int) -> None:
            """Start no further stage and end the running ones."""
            run.stopped = (how, number)
            processes.stop()

        def run_one(name: str) -> Outcome:
            limit = first_that_fits(run.resources.time_limits, run.plan[name].step)
            return run_stage(name, processes, limit, environment)

        stack.callback(processes.stop)
        stack.enter_context(_signals_stop(stop))
        if shown:
            stack.enter_context(_cancellation_stops(stop))
        _run_stages(run, run_one, ran_on)
    if run.stopped:
        return Cancelled(message="finished stages are saved; run it again to continue")
    states = [outcome.state for outcome in run.outcomes.values()]
    if State.FAILED in states:
        failed = (f"{one.name} ({one.error})" for one in run.outcomes.values() if one.state is State.FAILED)
        raise StageError(f"{states.count(State.FAILED)} of {len(states)} stages failed: {enumeration(failed)}")
    return {state.value: states.count(state) for state in State}


def _number_of_heavy_stages(run: Run) -> int:
    to_do = (stage for stage in run.plan.values() if stage.action is not Action.UNCHANGED)
    return sum(needs_pytorch(stage.command) for stage in to_do)


@contextmanager
def _signals_stop(stop: Callable[[str, int], None]) -> Iterator[None]:
    """SIGINT and SIGTERM stop the stages; a second one ends the process at once."""

    def note(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop("stopped", number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _cancellation_stops(stop: Callable[[str, int], None]) -> Iterator[None]:
    """Stop the stages if the flow run is cancelled in Prefect during the block."""
    ended, number = threading.Event(), UUID(str(flow_run.id))

    def watch() -> None:
        with get_client(sync_client=True) as client:
            while not ended.wait(LOOK_SECONDS):
                try:
                    state = client.read_flow_run(number).state
                except (httpx.HTTPError, PrefectException):
                    # A server that does not answer for a moment cancels nothing; if it stays away, the tasks fail.
                    continue
                if state is not None and (state.is_cancelling() or state.is_cancelled()):
                    stop("cancelled in Prefect", signal.SIGTERM)
                    return

    thread = threading.Thread(target=watch, name="cancellation watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LOOK_SECONDS)


class PassingFailure(StageError):
    """A stage failed with a temporary error; Prefect retries it."""


def _run_stages(run: Run, run_one: Callable[[str], Outcome], ran_on: dict[str, str]) -> None:
    """Run until every stage has an outcome; ``ran_on`` gets a line on each stage's node.

    Prefect would wait for a task's inputs on one of its worker threads, so waiting stages would block ready ones.
    Therefore a stage is submitted only when its inputs are done.
    """
    graph = run.plan
    left, delays = steps_left(graph), retry_delays(run.resources)
    # Of stages with equal chains, those with most inputs take longest: attacks before perplexities.
    order = {name: (-left[name], -len(node.dependencies)) for name, node in graph.items()}
    sorter = TopologicalSorter({name: node.upstream for name, node in graph.items()})
    sorter.prepare()
    ended: SimpleQueue[str] = SimpleQueue()
    ready: list[str] = []
    futures: dict[str, PrefectFuture[Any]] = {}
    running: set[str] = set()

    @task(name="stage", cache_policy=NO_CACHE, persist_result=False, log_prints=False)
    def stage(name: str) -> str:
        """Run one stage through DVC; its state is the result, and a failed stage is a failed task.

        The exception has the one line that may be shown; logs of the stage stay on this machine.
        """
        tries = run.outcomes[name].attempts if name in run.outcomes else 0
        outcome = run.outcomes[name] = replace(run_one(name), attempts=tries + 1)
        if name in ran_on:
            get_run_logger().info(ran_on[name])
        if outcome.state is State.FAILED:
            kind = PassingFailure if outcome.may_pass and not run.stopped else StageError
            raise kind(f"stage {name!r} failed: {outcome.error}")
        return outcome.state.value

    def note_end(name: str, _future: object) -> None:
        ended.put(name)

    def conclude(outcome: Outcome) -> None:
        run.outcomes[outcome.name] = outcome
        run.observer(outcome.name, outcome)
        sorter.done(outcome.name)

    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=order.__getitem__)
        decided = [outcome for name in ready if (outcome := _without_running(name, run)) is not None]
        for outcome in decided:
            ready.remove(outcome.name)
            conclude(outcome)
        while ready and not decided and len(running) < run.parallel_stages:
            name = ready.pop(0)
            run.observer(name, None)
            prepared = stage.with_options(
                name=graph[name].step,
                task_run_name=name,
                tags=set(tags(run.resources, graph[name].step)),
                retries=len(delays),
                retry_delay_seconds=delays,
                retry_condition_fn=lambda _task, _run, state: isinstance(state.data, PassingFailure),
            )
            before = [futures[above] for above in graph[name].upstream if above in futures]
            futures[name] = prepared.submit(name, return_state=False, wait_for=before)
            futures[name].add_done_callback(partial(note_end, name))
            running.add(name)
        if running and not decided:
            name = ended.get()
            running.remove(name)
            futures[name].wait()
            if name not in run.outcomes:
                # The task never reached its own code: Prefect lost its API, or an automation cancelled it.
                lost = f"Prefect did not run it: the task ended as {futures[name].state.name!r}"
                run.outcomes[name] = Outcome(name, State.FAILED, error=lost)
            conclude(run.outcomes[name])


def _without_running(name: str, run: Run) -> Outcome | None:
    """The outcome of a stage that need not or must not run, else ``None``."""
    upstream = [run.outcomes[above] for above in run.plan[name].upstream]
    lost = [outcome.name for outcome in upstream if outcome.state in UNDONE]
    if lost:
        return Outcome(name, State.SKIPPED, error=f"{enumeration(lost)} {UNFINISHED}")
    action = run.plan[name].action
    quiet = all(outcome.state is State.UNCHANGED for outcome in upstream)
    if action is Action.UNCHANGED or (action is Action.PERHAPS and quiet):
        return Outcome(name, State.UNCHANGED)
    return Outcome(name, State.SKIPPED, error=STOPPED) if run.stopped else None
