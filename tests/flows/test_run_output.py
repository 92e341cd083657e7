"""What a run prints: the short plan, the table of states, the results, the progress with the time left."""

import json
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from handmade_experiment import FEW, make_experiment
from scratch_project import node

from flows.graph.changes import Change, Kind
from flows.graph.graph import Graph
from flows.prefect_flow import prefect_api
from flows.prefect_flow.prefect_api import _explained
from flows.run_command import as_json, counts_line, failure_lines, result_lines, short_plan
from flows.runs.run_progress import FILE, Progress
from flows.stages.executor import STOPPED, Outcome, State
from tasks.cli import main
from tasks.errors import ResourceError


def made_plan() -> Graph:
    """Five stages with the same reason, one that waits for them and makes the results, one unchanged."""
    change = Change(Kind.PARAMETER, "filling.top_k.k", "parameter filling.top_k.k changed from 10 to 5")
    fills = {f"fill@{number}": replace(node(f"fill@{number}"), changes=(change,)) for number in range(5)}
    outputs = ("results/summary.md", "results/report.html", "results/verdict.txt")
    table = replace(node("table", *fills), outputs=outputs, after=tuple(fills))
    return {**fills, "raw": node("raw"), "table": table}


def test_what_failed_comes_last_and_what_was_skipped_is_one_line() -> None:
    assert short_plan(made_plan()) == [
        "7 stages: 5 will run, 1 will run if their inputs change, 1 unchanged",
        "  parameter filling.top_k.k changed from 10 to 5: fill@0, fill@1, fill@2 and 2 more",
    ]
    error, log = "no such list 'x'; name another", ".palimpsest/logs/b.log"
    outcomes = {
        "raw": Outcome("raw", State.UNCHANGED),
        "mask@a": Outcome("mask@a", State.RAN, 65.0, log="a.log"),
        "mask@b": Outcome("mask@b", State.FAILED, 1.0, error, log, attempts=2),
    }
    assert failure_lines(outcomes) == ["", "FAILED mask@b (2 tries)", f"  {error}", f"  its output: {log}"]
    names = [f"fill@{number}" for number in range(43)]
    skipped = {name: Outcome(name, State.SKIPPED, error="mask@b did not finish") for name in names}
    assert failure_lines(outcomes | skipped)[-1] == (
        "43 skipped (stages that they need failed): fill@0, fill@1, fill@2 and 40 more"
    )
    stopped = {"table": Outcome("table", State.SKIPPED, error=STOPPED)}
    assert failure_lines(stopped) == ["", "1 skipped (the run was stopped): table"]
    assert counts_line(outcomes | stopped, 70.0) == "1 ran, 1 unchanged, 1 failed, 1 skipped; 1:10"
    document = json.loads(json.dumps(as_json(outcomes, 70.0)))
    assert document["counts"] == {"ran": 1, "restored": 0, "unchanged": 1, "failed": 1, "skipped": 0}
    expected = {"name": "mask@a", "state": "ran", "seconds": 65.0, "error": None, "log": "a.log", "attempts": 1}
    assert document["stages"][1] == expected | {"may_pass": False}


def test_results_are_shown_only_where_this_run_made_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan, done = made_plan(), {"table": Outcome("table", State.UNCHANGED)}
    assert result_lines(plan, done) == []
    make_experiment(tmp_path, **FEW)
    assert main(["summarise"]) == main(["report"]) == 0
    Path("results/summary.md").write_text("| a |\n", encoding="utf-8")
    Path("results/verdict.txt").write_text("of an earlier day\n", encoding="utf-8")
    shown = result_lines(plan, done)
    page = f"report page: {tmp_path / 'results' / 'report.html'}"
    assert shown[:7] == ["", "| a |", "", "more tables: results/summary.md", "", page, ""]
    assert shown[7].startswith("chat: Mask with the allow list, fill with the Top-K method (MiniLM).")
    assert any(line.startswith("Can it be released now? No.") for line in shown)
    files = ("summary.md", "report.html", "verdict.txt")
    earlier = [line for name in files for line in ("", f"results/{name} is of an earlier run")]
    assert result_lines(plan, {"table": Outcome("table", State.SKIPPED)}) == earlier
    assert result_lines({"raw": plan["raw"]}, {}) == []


def progress(folder: Path, graph: Graph, parallel_stages: int, known: dict[str, float]) -> Progress:
    """The progress of a run after earlier ones with these times."""
    (folder / FILE).parent.mkdir(exist_ok=True)
    (folder / FILE).write_text(json.dumps(known), encoding="utf-8")
    return Progress(graph, parallel_stages, folder)


def test_the_time_left_is_work_shared_over_parallel_stages_or_the_longest_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One stage before three equal ones, which can run at once.
    fork = {"a": node("a"), **{f"b@{number}": node(f"b@{number}", "a") for number in (1, 2, 3)}}
    assert progress(tmp_path, fork, 2, {"a stage that is gone": 5.0}).seconds_left(0.0) is None
    # 10 + 3 * 20 = 70 seconds of work on two is 35, more than the longest chain of 30; b@3 is its step's mean.
    known = {"a": 10.0, "b@1": 20.0, "b@2": 20.0, "a stage that is gone": 5.0}
    for parallel_stages, seconds in ((2, 35.0), (8, 30.0)):
        assert progress(tmp_path, fork, parallel_stages, known).seconds_left(0.0) == seconds
    seen = progress(tmp_path, fork, 1, known)
    seen("a", None)
    assert seen.seconds_left(time.monotonic() + 400.0) == 60.0
    seen("a", Outcome("a", State.RAN, 12.34567))
    seen("b@1", Outcome("b@1", State.RESTORED, 0.1, log="b.log"))
    seen("b@2", Outcome("b@2", State.FAILED, 0.2, error="no such list '[x]'"))
    assert capsys.readouterr().err.splitlines() == [
        "[2/4] restored   b@1  0:00  about 0:40 left",
        "[3/4] failed     b@2  0:00  no such list '[x]'",
    ]
    seen.save()
    # Only of a stage that ran; those of earlier runs stay.
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8")) == known | {"a": 12.346}


def test_a_lost_prefect_api_is_explained_and_a_defect_is_not() -> None:
    error = RuntimeError("crashed")
    request = httpx.Request("POST", "http://127.0.0.1:4200/api/flow_runs/")
    answers = {status: httpx.Response(status, request=request) for status in (401, 500)}
    for cause, said in [
        (httpx.ConnectError("refused"), "Prefect's API does not answer (ConnectError)"),
        (answers[500], "Prefect's API does not answer (500); see that its server and database run"),
        (answers[401], "Prefect's server requires a login: set PREFECT_API_AUTH_STRING=USER:PASSWORD"),
    ]:
        is_answer = isinstance(cause, httpx.Response)
        error.__cause__ = httpx.HTTPStatusError("", request=request, response=cause) if is_answer else cause
        explained = _explained(error)
        assert isinstance(explained, ResourceError)
        assert said in str(explained)
    defect = KeyError("x")
    assert _explained(defect) is defect


@pytest.mark.parametrize("is_users", [False, True], ids=["of the checkout", "of the user"])
def test_prefect_is_configured_in_the_checkout_unless_the_user_has_done_so(
    is_users: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"HOME": str(tmp_path)}
    if is_users:
        (tmp_path / ".prefect").mkdir()
        profile = "active = 'mine'\n[profiles.mine]\nPREFECT_API_URL = 'http://127.0.0.1:9/api'\n"
        (tmp_path / ".prefect" / "profiles.toml").write_text(profile)
        environment["PREFECT_SERVER_ANALYTICS_ENABLED"] = "true"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(prefect_api.os, "environ", environment)
    prefect_api.configure(tmp_path / "project", verbose=is_users)
    home = tmp_path / "project" / ".palimpsest" / "prefect"
    assert environment.get("PREFECT_HOME") == (None if is_users else str(home))
    assert is_users or home.stat().st_mode & 0o777 == 0o700
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == str(is_users).lower()
    assert environment.get("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL") == (None if is_users else "CRITICAL")
    assert prefect_api.likely_configured() == is_users
    environment["PREFECT_API_URL"] = "http://prefect.example/api"
    assert prefect_api.likely_configured()
