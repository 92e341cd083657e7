"""The plan says which stages run and why, and making it changes nothing."""

import json
import shutil
from pathlib import Path

from scratch_project import ALL, FILLS, GRAPH, Project, make_project

from flows.graph.changes import value_changes
from flows.graph.graph import open_repository
from flows.graph.plan import Action, Plan, make_plan
from flows.graph.selection import Selection

RUN, PERHAPS, UNCHANGED = Action.RUN, Action.PERHAPS, Action.UNCHANGED


def plan_of(project: Project, *patterns: str) -> Plan:
    with open_repository(project.folder) as repository:
        return make_plan(repository, Selection(patterns))


def actions(plan: Plan) -> dict[str, Action]:
    return {name: stage.action for name, stage in plan.stages.items()}


def test_everything_runs_where_nothing_has_run(project: Project) -> None:
    plan = plan_of(project)
    assert actions(plan) == dict.fromkeys(ALL, RUN)
    assert plan.stages["raw"].reasons == ("has not run yet",)
    assert plan.stages["table"].reasons == ("has not run yet", f"after {', '.join(FILLS)}")
    assert plan.summary() == "8 stages: 8 will run, 0 will run if their inputs change, 0 unchanged"


def test_nothing_runs_where_all_is_up_to_date(finished: Project) -> None:
    plan = plan_of(finished)
    assert actions(plan) == dict.fromkeys(ALL, UNCHANGED)
    assert plan.nothing_to_do
    assert all(stage.reasons == () for stage in plan.stages.values())


def test_a_changed_parameter_concerns_its_branch_only(finished: Project) -> None:
    finished.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: 5}")
    plan = plan_of(finished)
    expected = {name: RUN if name.endswith("top_k") else UNCHANGED for name in ALL} | {"table": PERHAPS}
    assert actions(plan) == expected
    assert plan.stages["fill@list-top_k"].reasons == ("parameter filling.top_k.k changed from 10 to 5",)
    assert plan.stages["table"].reasons == ("after fill@list-top_k, fill@tagger-top_k",)
    assert list(plan.causes()) == [
        ("parameter filling.top_k.k changed from 10 to 5", ["fill@list-top_k", "fill@tagger-top_k"])
    ]


def test_that_all_parameters_are_checked_again_makes_nothing_follow(tmp_path: Path) -> None:
    check = "  cells:\n    cmd: echo ok > ok.txt\n    params: [filling]\n    outs: [ok.txt]\n"
    graph = GRAPH.replace("stages:\n", f"stages:\n{check}").replace("[in.txt]", "[in.txt, ok.txt]")
    project = make_project(tmp_path / "a project", graph)
    project.dvc("repro")
    project.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: 5}")
    found = actions(plan_of(project, "mask"))
    assert found == dict.fromkeys(found, UNCHANGED) | {"cells": RUN}
    (project.folder / "ok.txt").unlink()
    assert plan_of(project, "mask").stages["raw"].reasons == ("after cells",)


def test_a_changed_file_runs_its_stage_and_perhaps_what_follows(finished: Project) -> None:
    finished.write("in.txt", "two\n")
    plan = plan_of(finished)
    assert actions(plan) == dict.fromkeys(ALL, PERHAPS) | {"raw": RUN}
    assert plan.stages["raw"].reasons == ("input in.txt changed",)
    assert plan.stages["mask@list"].reasons == ("after raw",)


def test_a_missing_output_is_restored_from_the_cache(finished: Project) -> None:
    (finished.folder / "masked" / "list.txt").unlink()
    stage = plan_of(finished).stages["mask@list"]
    assert (stage.action, stage.reasons, stage.restorable) == (RUN, ("output masked/list.txt is missing",), True)


def test_a_missing_output_without_a_cache_is_made_again(finished: Project) -> None:
    (finished.folder / "table.txt").unlink()
    shutil.rmtree(finished.folder / ".dvc" / "cache" / "files")
    stage = plan_of(finished, "raw").stages["raw"]
    assert (stage.action, stage.restorable) == (RUN, False)
    assert stage.reasons == ("output raw.txt is not in DVC's cache",)


def test_each_change_of_a_stage_of_its_own_is_a_reason(finished: Project) -> None:
    finished.replace("dvc.yaml", "cat filled/*.txt > table.txt", "cat filled/*.txt | sort > table.txt")
    plan = plan_of(finished)
    assert actions(plan) == dict.fromkeys(ALL, UNCHANGED) | {"table": RUN}
    assert plan.stages["table"].reasons == ("its command changed",)
    assert not plan.stages["table"].restorable
    finished.replace("dvc.yaml", " | sort > table.txt", " > table.txt")
    finished.write("table.txt", "written by hand\n")
    assert plan_of(finished).stages["table"].reasons == ("output table.txt changed",)
    # An input that no running stage makes.
    finished.dvc("checkout", "--quiet", "--force", "table")
    finished.replace("dvc.yaml", "deps: [filled]", "deps: [filled, in.txt]")
    assert plan_of(finished).stages["table"].reasons == ("input in.txt changed",)
    (finished.folder / "in.txt").unlink()
    assert plan_of(finished).stages["raw"].reasons == ("input in.txt is missing",)
    (finished.folder / "dvc.lock").unlink()
    assert plan_of(finished).stages["raw"].reasons == ("has not run yet", "input in.txt is missing")
    finished.write("dvc.yaml", "stages:\n  hello:\n    cmd: echo hello\n")
    (reason,) = plan_of(finished).stages["hello"].reasons
    assert "runs every time" in reason


def test_a_value_that_was_there_before_comes_from_the_run_cache(finished: Project) -> None:
    finished.replace("params.yaml", "k: 10}", "k: 5}")
    assert not plan_of(finished).stages["fill@list-top_k"].restorable
    finished.dvc("repro", "--quiet")
    finished.replace("params.yaml", "k: 5}", "k: 10}")
    plan = plan_of(finished)
    assert plan.stages["fill@list-top_k"].restorable
    assert plan.summary().startswith("8 stages: 2 will run (2 from DVC's cache), 1 will run if")


def test_a_limit_for_a_step_that_is_not_there_is_an_error_of_the_plan_too(project: Project) -> None:
    project.replace("params.yaml", "threads: 1", "threads: 1, time_limits: {tabel: 5}")
    done = project.command("plan")
    assert done.returncode == 1
    assert "resources.time_limits: 'tabel' fits no step of dvc.yaml (did you mean 'table'?)" in done.stderr


def test_making_a_plan_writes_nothing(finished: Project) -> None:
    finished.write("in.txt", "two\n")
    (finished.folder / "table.txt").unlink()
    before = finished.files()
    plan_of(finished)
    assert finished.files() == before


def test_the_plan_command_prints_text_and_json(finished: Project) -> None:
    finished.write("in.txt", "two\n")
    text = finished.command("plan", "mask@list")
    assert text.returncode == 0
    assert text.stdout.splitlines() == [
        "run                       raw        input in.txt changed",
        "run if its inputs change  mask@list  after raw",
        "",
        "2 stages: 1 will run, 1 will run if their inputs change, 0 unchanged",
    ]
    document = json.loads(finished.command("plan", "--json").stdout)
    assert document["counts"] == {"run": 1, "run if its inputs change": 7, "unchanged": 0}
    assert document["stages"][0] == {
        "name": "raw",
        "action": "run",
        "reasons": ["input in.txt changed"],
        "changes": [{"kind": "input", "subject": "in.txt"}],
        "after": [],
        "restorable": False,
    }


def test_a_changed_value_is_followed_to_its_key() -> None:
    before = {"k": 10, "list": [1], "gone": None, "same": {"a": 1}}
    after = {"k": 5, "list": [1, 2], "same": {"a": 1, "b": True}}
    assert list(value_changes("filling.top_k", before, after)) == [
        ("filling.top_k.k", "changed from 10 to 5"),
        ("filling.top_k.list", "changed from [1] to [1, 2]"),
        ("filling.top_k.gone", "is gone"),
        ("filling.top_k.same.b", "is new (True)"),
    ]
