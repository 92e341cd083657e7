"""When a stage is started: order, limits, failures and stops, with the stages themselves replaced by functions."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scratch_project import node

from flows.graph.changes import Change, Kind
from flows.graph.graph import Action, Graph
from flows.prefect_flow import experiment
from flows.runs.preparation import Run
from flows.stages.executor import Outcome, State
from tasks.settings.resources import ResourceSettings

RAN, FAILED, SKIPPED, UNCHANGED = State.RAN, State.FAILED, State.SKIPPED, State.UNCHANGED
POOL = ThreadPoolExecutor(16)
waited_for: dict[str, list[Any]] = {}
"""Futures that each started stage waited for."""


class ThreadTask:
    """A Prefect task on threads: the same calls, without a server."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function

    def with_options(self, **_options: Any) -> "ThreadTask":
        return self

    def submit(self, name: str, *, return_state: bool, wait_for: list[Future[Any]]) -> Future[Any]:
        assert not return_state
        assert all(future.done() for future in wait_for)
        waited_for[name] = wait_for
        future = POOL.submit(self._function, name)
        future.wait = future.exception  # type: ignore[attr-defined]
        return future


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for.clear()
    monkeypatch.setattr(experiment, "task", lambda **_options: ThreadTask)


REASONS: dict[Action, dict[str, Any]] = {
    Action.RUN: {"changes": (Change(Kind.NEW, "", "has not run yet"),)},
    Action.PERHAPS: {"after": ("another",)},
    Action.UNCHANGED: {},
}


def plan(upstream: dict[str, str], **actions: Action) -> Graph:
    """The plan of stages by those above them, in which every other stage runs."""
    stages = {name: node(name, *above.split()) for name, above in upstream.items()}
    return {name: replace(stage, **REASONS[actions.get(name, Action.RUN)]) for name, stage in stages.items()}


def scheduled(plan: Graph, function: Callable[[str], State], jobs: int, stop_after: str = "") -> Run:
    run = Run(Path(), plan, ResourceSettings(threads=1, parallel_stages=1, retries=0), jobs, -1)

    def observe(name: str, outcome: Outcome | None) -> None:
        seen.append((name, outcome.state if outcome else None))
        if outcome and name == stop_after:
            run.stopped = ("stopped", 2)

    seen: list[tuple[str, State | None]] = []
    run.observer = observe
    experiment._run_stages(run, lambda name: Outcome(name, function(name), error="broken"), {})
    assert sorted(name for name, state in seen if state) == sorted(run.outcomes)
    assert {name for name, state in seen if not state} == set(waited_for)
    return run


def states(run: Run) -> dict[str, State]:
    return {name: outcome.state for name, outcome in run.outcomes.items()}


FORK = {"a": "", "b": "a", "c": "a", "d": "b", "e": ""}
"""a -> b -> d, a -> c, and e alone."""


def test_every_stage_runs_after_its_inputs_and_the_longest_chain_goes_first() -> None:
    order: list[str] = []
    run = scheduled(plan(FORK), lambda name: order.append(name) or RAN, 1)  # type: ignore[func-returns-value]
    assert states(run) == dict.fromkeys("abcde", RAN)
    assert order == ["a", "b", "c", "d", "e"] or order == ["a", "b", "e", "c", "d"]
    assert len(waited_for["d"]) == 1
    assert waited_for["e"] == []


def test_no_more_stages_run_at_once_than_allowed() -> None:
    running: list[str] = []
    counts = []

    def function(name: str) -> State:
        running.append(name)
        counts.append(len(running))
        time.sleep(0.05)
        running.remove(name)
        return RAN

    scheduled(plan({f"s{number}": "" for number in range(9)}), function, 3)
    assert max(counts) == 3


def test_a_waiting_stage_does_not_block_a_ready_one() -> None:
    """Two places, a long stage, one that waits for it, and one that is ready: the ready one runs meanwhile."""
    free_ended = threading.Event()

    def function(name: str) -> State:
        if name == "long":
            assert free_ended.wait(10)
        if name == "free":
            free_ended.set()
        return RAN

    run = scheduled(plan({"long": "", "waits": "long", "free": ""}), function, 2)
    assert states(run) == dict.fromkeys(["long", "waits", "free"], RAN)


def test_a_failed_stage_stops_its_branch_alone() -> None:
    run = scheduled(plan(FORK), lambda name: FAILED if name == "b" else RAN, 2)
    assert states(run) == {"a": RAN, "b": FAILED, "c": RAN, "d": SKIPPED, "e": RAN}
    assert run.outcomes["d"].error == "b did not finish"


def test_dvc_is_asked_only_about_stages_whose_inputs_may_have_changed() -> None:
    made = plan(FORK, b=Action.PERHAPS, c=Action.PERHAPS, d=Action.PERHAPS, e=Action.UNCHANGED)
    assert states(scheduled(made, lambda _: UNCHANGED, 2)) == dict.fromkeys("abcde", UNCHANGED)
    assert list(waited_for) == ["a"]
    waited_for.clear()
    scheduled(made, lambda name: RAN if name == "a" else UNCHANGED, 2)
    assert sorted(waited_for) == ["a", "b", "c"]


def test_a_stopped_run_starts_nothing_more() -> None:
    run = scheduled(plan(FORK, e=Action.UNCHANGED), lambda _: RAN, 1, stop_after="a")
    assert states(run) == {"a": RAN, "b": SKIPPED, "c": SKIPPED, "d": SKIPPED, "e": UNCHANGED}
    assert run.outcomes["b"].error == "the run was stopped"
