"""When a stage is started: order, limits, failures and stops, with the stages themselves replaced by functions."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from flows.graph.graph import Graph, Node
from flows.graph.plan import Action, Plan, PlannedStage
from flows.prefect_flow import experiment
from flows.prefect_flow.experiment import Scheduler
from flows.runs.session import Session, open_session, session_open
from flows.stages.executor import Outcome, State
from tasks.errors import StageError

RAN, FAILED, SKIPPED, UNCHANGED = State.RAN, State.FAILED, State.SKIPPED, State.UNCHANGED


class ThreadTask:
    """Stands for the Prefect task: the same calls, on a plain thread pool."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(8)
        self.waited_for: dict[str, list[Any]] = {}

    def with_options(self, **_options: str) -> "ThreadTask":
        return self

    def submit(self, name: str, *, return_state: bool, wait_for: list[Future[Any]]) -> Future[Any]:
        assert not return_state
        assert all(future.done() for future in wait_for)
        self.waited_for[name] = wait_for
        return self.pool.submit(run_quietly, name, open_session())


def run_quietly(name: str, session: Session) -> None:
    session.outcomes[name] = session.run_stage(name)


@pytest.fixture
def thread_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadTask]:
    task = ThreadTask()
    monkeypatch.setattr(experiment, "stage", task)
    yield task
    task.pool.shutdown()


def graph(**upstream: str) -> Graph:
    return Graph({name: Node(name, "true", (), (), (), tuple(above.split())) for name, above in upstream.items()})


def plan(of: Graph, **actions: Action) -> Plan:
    return Plan(of, {name: PlannedStage(name, actions.get(name, Action.RUN), (), (), False) for name in of.nodes})


def scheduled(session: Session) -> dict[str, State]:
    with session_open(session):
        Scheduler(session).run()
    return {name: outcome.state for name, outcome in session.outcomes.items()}


def always(state: State) -> Callable[[str], Outcome]:
    return lambda name: Outcome(name, state, error="broken" if state is FAILED else None)


# a -> b -> d, a -> c, and e alone
FORK = graph(a="", b="a", c="a", d="b", e="")


def test_every_stage_runs_after_what_it_needs_and_the_longest_chain_goes_first(thread_task: ThreadTask) -> None:
    order = []

    def run(name: str) -> Outcome:
        order.append(name)
        return Outcome(name, RAN)

    assert scheduled(Session(plan(FORK), run, 1)) == dict.fromkeys("abcde", RAN)
    assert order == ["a", "b", "c", "d", "e"]
    assert len(thread_task.waited_for["d"]) == 1
    assert thread_task.waited_for["e"] == []


@pytest.mark.usefixtures("thread_task")
def test_no_more_stages_run_at_once_than_allowed() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def run(name: str) -> Outcome:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return Outcome(name, RAN)

    wide = graph(**{f"s{number}": "" for number in range(9)})
    scheduled(Session(plan(wide), run, 3))
    assert most == 3


@pytest.mark.usefixtures("thread_task")
def test_a_waiting_stage_keeps_no_ready_one_from_running() -> None:
    """Two places, a long stage, one that waits for it, and one that is ready: the ready one runs meanwhile."""
    free_ended = threading.Event()

    def run(name: str) -> Outcome:
        if name == "long":
            assert free_ended.wait(10)
        if name == "free":
            free_ended.set()
        return Outcome(name, RAN)

    assert scheduled(Session(plan(graph(long="", waits="long", free="")), run, 2)) == dict.fromkeys(
        ["long", "waits", "free"], RAN
    )


@pytest.mark.usefixtures("thread_task")
def test_a_failed_stage_stops_its_branch_alone() -> None:
    session = Session(plan(FORK), lambda name: Outcome(name, FAILED if name == "b" else RAN, error="broken"), 2)
    assert scheduled(session) == {"a": RAN, "b": FAILED, "c": RAN, "d": SKIPPED, "e": RAN}
    assert session.outcomes["d"].error == "b did not finish"


def test_unchanged_stages_are_not_given_to_dvc(thread_task: ThreadTask) -> None:
    """Neither those that the plan knows, nor those that depended on inputs which turned out unchanged."""
    made = plan(FORK, a=Action.RUN, b=Action.PERHAPS, c=Action.PERHAPS, d=Action.PERHAPS, e=Action.UNCHANGED)
    session = Session(made, always(UNCHANGED), 2)
    assert scheduled(session) == dict.fromkeys("abcde", UNCHANGED)
    assert list(thread_task.waited_for) == ["a"]


def test_a_stage_behind_one_that_ran_is_given_to_dvc(thread_task: ThreadTask) -> None:
    made = plan(FORK, b=Action.PERHAPS, c=Action.PERHAPS, d=Action.PERHAPS, e=Action.UNCHANGED)
    scheduled(Session(made, lambda name: Outcome(name, RAN if name == "a" else UNCHANGED), 2))
    assert sorted(thread_task.waited_for) == ["a", "b", "c"]


@pytest.mark.usefixtures("thread_task")
def test_a_stopped_run_starts_nothing_more() -> None:
    session = Session(plan(FORK, e=Action.UNCHANGED), always(RAN), 1)
    session.observer = lambda name, outcome: session.stopped.set() if outcome and name == "a" else None
    assert scheduled(session) == {"a": RAN, "b": SKIPPED, "c": SKIPPED, "d": SKIPPED, "e": UNCHANGED}
    assert session.outcomes["b"].error == "the run was stopped"


@pytest.mark.usefixtures("thread_task")
def test_who_watches_hears_of_every_stage() -> None:
    heard: list[tuple[str, str]] = []
    session = Session(plan(graph(a="", b="a")), always(RAN), 1)
    session.observer = lambda name, outcome: heard.append((name, outcome.state if outcome else "starts"))
    scheduled(session)
    assert heard == [("a", "starts"), ("a", "ran"), ("b", "starts"), ("b", "ran")]


def test_the_prefect_task_fails_with_the_stage() -> None:
    session = Session(plan(FORK), always(FAILED), 1)
    with session_open(session), pytest.raises(StageError, match="stage 'a' failed: broken"):
        experiment.stage.fn("a")
    assert session.outcomes["a"].state is FAILED
    with session_open(Session(plan(FORK), always(RAN), 1)):
        assert experiment.stage.fn("a") == "ran"
