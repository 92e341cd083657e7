"""What a run prints: the short plan, the table of states, the results, the progress."""

import json
from pathlib import Path

import httpx
import pytest
from handmade_experiment import FEW, make_experiment

from flows.graph.changes import Change, Kind
from flows.graph.graph import Graph, Node
from flows.graph.plan import Action, Plan, PlannedStage
from flows.graph.selection import Selection
from flows.prefect_flow import prefect_api
from flows.prefect_flow.prefect_api import _explained
from flows.run_command import as_json, failure_lines, final_lines, result_lines, short_plan
from flows.runs.run_progress import Progress, TimeLeft
from flows.stages.executor import STOPPED, Outcome, State
from tasks.cli import main
from tasks.errors import ResourceError
from tasks.results.summary.summary_document import main_tables


def made_plan(count: int = 5) -> Plan:
    """``count`` stages with the same reason, one that waits for them and makes the results, one unchanged."""
    change = Change(Kind.PARAMETER, "filling.top_k.k", "parameter filling.top_k.k changed from 10 to 5")
    names = [f"fill@{number}" for number in range(count)]
    nodes = {name: Node(name, "true", (), (), (), ()) for name in names}
    outputs = ("results/summary.md", "results/report.html", "results/verdict.txt")
    nodes |= {"table": Node("table", "true", (), (), outputs, tuple(names)), "raw": Node("raw", "true", (), (), (), ())}
    stages = {name: PlannedStage(name, Action.RUN, (change,), (), False) for name in names}
    stages["table"] = PlannedStage("table", Action.PERHAPS, (), tuple(names), False)
    stages["raw"] = PlannedStage("raw", Action.UNCHANGED, (), (), False)
    return Plan(Graph(nodes), stages)


def test_the_short_plan_has_the_counts_and_each_reason_once() -> None:
    assert short_plan(made_plan()) == [
        "7 stages: 5 will run, 1 will run if their inputs change, 1 unchanged",
        "  parameter filling.top_k.k changed from 10 to 5: fill@0, fill@1, fill@2 and 2 more",
    ]


def test_what_failed_stands_last_and_what_was_skipped_is_one_line() -> None:
    outcomes = {
        "raw": Outcome("raw", State.UNCHANGED),
        "mask@a": Outcome("mask@a", State.RAN, 65.0, log="a.log"),
        "mask@b": Outcome(
            "mask@b", State.FAILED, 1.0, "no such list 'x'; name another", ".palimpsest/logs/b.log", attempts=2
        ),
    }
    skipped = {
        f"fill@{number}": Outcome(f"fill@{number}", State.SKIPPED, error="mask@b did not finish")
        for number in range(43)
    }
    assert failure_lines(outcomes) == [
        "",
        "FAILED mask@b (2 tries)",
        "  no such list 'x'; name another",
        "  its output: .palimpsest/logs/b.log",
    ]
    assert failure_lines(outcomes | skipped)[-1] == (
        "43 skipped (stages that they need failed): fill@0, fill@1, fill@2 and 40 more"
    )
    stopped = {"table": Outcome("table", State.SKIPPED, error=STOPPED)}
    assert failure_lines(stopped) == ["", "1 skipped (the run was stopped): table"]
    outcomes["table"] = Outcome("table", State.SKIPPED, error="mask@b did not finish")
    assert final_lines(outcomes, 70.0) == [
        "",
        "ran        mask@a     1:05",
        "",
        "1 ran, 1 unchanged, 1 failed, 1 skipped; 1:10",
    ]
    document = json.loads(json.dumps(as_json(outcomes, 70.0)))
    assert document["counts"] == {"ran": 1, "restored": 0, "unchanged": 1, "failed": 1, "skipped": 1}
    expected = {"name": "mask@a", "state": "ran", "seconds": 65.0, "error": None, "log": "a.log", "attempts": 1}
    assert document["stages"][1] == expected


def test_results_are_shown_only_where_this_run_stands_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan, done = made_plan(), {"table": Outcome("table", State.UNCHANGED)}
    assert result_lines(plan, done) == []
    make_experiment(tmp_path, **FEW)
    assert main(["summarise"]) == main(["report"]) == 0
    Path("results/summary.md").write_text("| a |\n", encoding="utf-8")
    Path("results/verdict.txt").write_text("of an earlier day\n", encoding="utf-8")
    shown = result_lines(plan, done)
    assert shown[7].startswith("chat: Mask with the allow list, fill with the Top-K method (MiniLM).")
    assert any(line.startswith("Can it be released now? No.") for line in shown)
    assert shown[:7] == [
        "",
        "| a |",
        "",
        "more tables: results/summary.md",
        "",
        f"report page: {tmp_path / 'results' / 'report.html'}",
        "",
    ]
    skipped = {"table": Outcome("table", State.SKIPPED)}
    assert result_lines(plan, skipped) == [
        "",
        "results/summary.md is of an earlier run",
        "",
        "results/report.html is of an earlier run",
        "",
        "results/verdict.txt is of an earlier run",
    ]
    assert result_lines(Plan(plan.graph.select(Selection(["raw"])), plan.stages), {}) == []


def test_each_checked_stage_is_a_line_with_its_reason_or_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(7, TimeLeft(made_plan().graph, 2, {"fill@0": 30.0}))
    progress("fill@0", None)
    progress("fill@1", None)
    progress("raw", Outcome("raw", State.UNCHANGED))
    assert capsys.readouterr().err == ""
    progress("fill@0", Outcome("fill@0", State.FAILED, 3.0, error="no such list '[x]'"))
    # Five stages as long as the known one, two at a time.
    progress("fill@1", Outcome("fill@1", State.RESTORED, log="b.log"))
    assert capsys.readouterr().err.splitlines() == [
        "[2/7] failed     fill@0  0:03  no such list '[x]'",
        "[3/7] restored   fill@1  0:00  about 1:00 left",
    ]


def test_a_lost_prefect_api_is_explained_and_a_defect_is_not() -> None:
    error = RuntimeError("crashed")
    error.__cause__ = httpx.ConnectError("refused")
    explained = _explained(error)
    assert isinstance(explained, ResourceError)
    assert "Prefect's API does not answer (ConnectError)" in str(explained)
    request = httpx.Request("POST", "http://127.0.0.1:4200/api/flow_runs/")
    error.__cause__ = httpx.HTTPStatusError("", request=request, response=httpx.Response(500, request=request))
    assert "Prefect's API does not answer (500); see that its server and database run" in str(_explained(error))
    defect = KeyError("x")
    assert _explained(defect) is defect


def test_prefect_is_configured_in_the_checkout_unless_the_user_has_done_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect_api.os, "environ", {"HOME": str(tmp_path)})
    prefect_api.configure(tmp_path / "project")
    environment = prefect_api.os.environ
    assert environment["PREFECT_HOME"] == str(tmp_path / "project" / ".palimpsest" / "prefect")
    assert Path(environment["PREFECT_HOME"]).stat().st_mode & 0o777 == 0o700
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert environment["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] == "CRITICAL"
    assert not prefect_api.likely_configured()
    environment["PREFECT_API_URL"] = "http://prefect.example/api"
    assert prefect_api.likely_configured()


def test_a_prefect_profile_of_the_user_is_left_in_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".prefect").mkdir()
    (tmp_path / ".prefect" / "profiles.toml").write_text(
        "active = 'mine'\n[profiles.mine]\nPREFECT_API_URL = 'http://127.0.0.1:9/api'\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PREFECT_HOME")
    monkeypatch.delenv("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", raising=False)
    monkeypatch.setattr(
        prefect_api.os, "environ", {**prefect_api.os.environ, "PREFECT_SERVER_ANALYTICS_ENABLED": "true"}
    )
    prefect_api.configure(tmp_path / "project", verbose=True)
    environment = prefect_api.os.environ
    assert "PREFECT_HOME" not in environment
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "true"
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL" not in environment
    assert prefect_api.likely_configured()


def test_a_terminal_shows_the_first_tables_of_each_data_set_and_the_legend() -> None:
    document = [
        line
        for name in ("chat", "mail")
        for line in (
            f"## {name}", "",
            *(text for number in (1, 2, 3, 4) for text in (f"### table {number}", "", f"| {name} {number} |", "")),
            f"legend of {name}",
        )
    ]  # fmt: skip
    shown = main_tables("\n".join(document))
    assert [line for line in shown if line] == [
        line
        for name in ("chat", "mail")
        for line in (f"## {name}", "### table 1", f"| {name} 1 |", "### table 2", f"| {name} 2 |", f"legend of {name}")
    ]
