"""What a run prints: the short plan, the table of states, the results, the progress with the time left."""

import json
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
from flows.stages.executor import Outcome, State
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
    names = [f"fill@{number}" for number in range(43)]
    outcomes |= {name: Outcome(name, State.SKIPPED, error="mask@b did not finish") for name in names}
    assert failure_lines(outcomes) == [
        *("", "FAILED mask@b (2 tries)", f"  {error}", f"  its output: {log}"),
        *("", "43 skipped (stages that they need failed): fill@0, fill@1, fill@2 and 40 more"),
    ]
    assert counts_line(outcomes, 70.0) == "1 ran, 1 unchanged, 1 failed, 43 skipped; 1:10"
    document = json.loads(json.dumps(as_json(outcomes, 70.0)))
    assert document["counts"] == {"ran": 1, "restored": 0, "unchanged": 1, "failed": 1, "skipped": 43}
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


def test_a_lost_prefect_api_is_explained_and_a_defect_is_not() -> None:
    error = RuntimeError("crashed")
    request = httpx.Request("POST", "http://127.0.0.1:4200/api/flow_runs/")
    for status, said in [
        (500, "Prefect's API does not answer (500); see that its server and database run"),
        (401, "Prefect's server requires a login: set PREFECT_API_AUTH_STRING=USER:PASSWORD"),
    ]:
        answer = httpx.Response(status, request=request)
        error.__cause__ = httpx.HTTPStatusError("", request=request, response=answer)
        explained = _explained(error)
        assert isinstance(explained, ResourceError)
        assert said in str(explained)
    defect = KeyError("x")
    assert _explained(defect) is defect


def test_prefect_is_configured_in_the_checkout_unless_the_user_has_done_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {"HOME": str(tmp_path)}
    monkeypatch.setattr(prefect_api.os, "environ", environment)
    prefect_api.configure(tmp_path / "project")
    home = tmp_path / "project" / ".palimpsest" / "prefect"
    assert (environment["PREFECT_HOME"], home.stat().st_mode & 0o777) == (str(home), 0o700)
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert not prefect_api.likely_configured()
    environment.clear()
    environment |= {"HOME": str(tmp_path), "PREFECT_SERVER_ANALYTICS_ENABLED": "true"}
    (tmp_path / ".prefect").mkdir()
    (tmp_path / ".prefect" / "profiles.toml").write_text("PREFECT_API_URL = 'http://127.0.0.1:9/api'\n")
    prefect_api.configure(tmp_path / "project")
    assert prefect_api.likely_configured()
    assert "PREFECT_HOME" not in environment
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "true"
