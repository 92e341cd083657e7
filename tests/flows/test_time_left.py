"""The estimate of a run's remaining time, checked by hand."""

from pathlib import Path

from flows.graph.graph import Graph, Node
from flows.runs.run_progress import TimeLeft, load_durations
from flows.stages.executor import Outcome, State


def node(name: str, *upstream: str) -> Node:
    return Node(name, "true", (), (), (), upstream)


# One stage before three equal ones, which can run at once.
GRAPH = Graph({"a": node("a"), **{f"b@{number}": node(f"b@{number}", "a") for number in (1, 2, 3)}})


def test_nothing_is_said_while_nothing_is_known() -> None:
    assert TimeLeft(GRAPH, 2, {}).seconds(0.0) is None
    assert TimeLeft(GRAPH, 2, {"a stage that is gone": 5.0}).seconds(0.0) is None


def test_work_is_shared_over_parallel_stages() -> None:
    # 10 + 3 * 20 = 70 seconds of work on two is 35, more than the longest chain of 30; b@3 is its step's mean.
    known = {"a": 10.0, "b@1": 20.0, "b@2": 20.0}
    assert TimeLeft(GRAPH, 2, known).seconds(0.0) == 35.0
    assert TimeLeft(GRAPH, 8, known).seconds(0.0) == 30.0


def test_the_estimate_goes_down_while_stages_run_and_end() -> None:
    left = TimeLeft(GRAPH, 1, {"a": 10.0, "b@1": 20.0})
    assert left.seconds(0.0) == 70.0
    left.start("a", 100.0)
    assert left.seconds(104.0) == 66.0
    assert left.seconds(500.0) == 60.0
    left.end(Outcome("a", State.RAN, 12.0))
    left.end(Outcome("b@1", State.UNCHANGED))
    assert left.seconds(0.0) == 40.0


def test_only_stages_that_ran_are_remembered(tmp_path: Path) -> None:
    left = TimeLeft(GRAPH, 1, {"b@1": 7.0})
    left.end(Outcome("a", State.RAN, 1.23456))
    left.end(Outcome("b@1", State.RESTORED, 0.1))
    left.end(Outcome("b@2", State.FAILED, 0.2))
    left.save(tmp_path)
    assert load_durations(tmp_path) == {"a": 1.235, "b@1": 7.0}
