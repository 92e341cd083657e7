"""The plan says which stages run and why, and making it changes nothing."""

import json
import shutil
from pathlib import Path

from scratch_project import ALL, FILLS, GRAPH, Project, make_project

from flows.graph.changes import value_changes
from flows.graph.graph import Action, Graph
from flows.graph.plan import causes, summary
from flows.graph.private_sources import changed_sources

RUN, PERHAPS, UNCHANGED = Action.RUN, Action.PERHAPS, Action.UNCHANGED


def actions(plan: Graph) -> dict[str, Action]:
    return {name: stage.action for name, stage in plan.items()}


def test_everything_runs_where_nothing_has_run_and_nothing_where_all_is_up_to_date(
    project: Project, finished_template: Path
) -> None:
    plan = project.plan()
    assert actions(plan) == dict.fromkeys(ALL, RUN)
    assert plan["raw"].reasons == ("has not run yet",)
    assert plan["table"].reasons == ("has not run yet", f"after {', '.join(FILLS)}")
    assert summary(plan) == "8 stages: 8 will run, 0 will run if their inputs change, 0 unchanged"
    plan = Project(finished_template).plan()
    assert actions(plan) == dict.fromkeys(ALL, UNCHANGED)
    assert all(stage.reasons == () for stage in plan.values())


def test_a_changed_parameter_concerns_its_branch_only(finished: Project) -> None:
    finished.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: 5}")
    plan = finished.plan()
    expected = {name: RUN if name.endswith("top_k") else UNCHANGED for name in ALL} | {"table": PERHAPS}
    assert actions(plan) == expected
    assert plan["fill@list-top_k"].reasons == ("parameter filling.top_k.k changed from 10 to 5",)
    assert plan["table"].reasons == ("after fill@list-top_k, fill@tagger-top_k",)
    changed = "parameter filling.top_k.k changed from 10 to 5"
    assert causes(plan) == {changed: ["fill@list-top_k", "fill@tagger-top_k"]}


def test_that_all_parameters_are_checked_again_makes_nothing_follow(tmp_path: Path) -> None:
    check = "  cells:\n    cmd: echo ok > ok.txt\n    params: [filling]\n    outs: [ok.txt]\n"
    graph = GRAPH.replace("stages:\n", f"stages:\n{check}").replace("[in.txt]", "[in.txt, ok.txt]")
    project = make_project(tmp_path / "a project", graph)
    project.dvc("repro", "mask")
    project.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: 5}")
    found = actions(project.plan("mask"))
    assert found == dict.fromkeys(found, UNCHANGED) | {"cells": RUN}
    (project.folder / "ok.txt").unlink()
    assert project.plan("mask")["raw"].reasons == ("after cells",)


def test_each_change_of_a_stage_of_its_own_is_a_reason(finished: Project) -> None:
    (finished.folder / "masked" / "list.txt").unlink()
    assert finished.plan()["mask@list"].reasons == ("output masked/list.txt is missing",)
    finished.dvc("checkout", "--quiet")
    finished.replace("dvc.yaml", "cat filled/*.txt > table.txt", "cat filled/*.txt | sort > table.txt")
    plan = finished.plan()
    assert actions(plan) == dict.fromkeys(ALL, UNCHANGED) | {"table": RUN}
    assert plan["table"].reasons == ("its command changed",)
    finished.replace("dvc.yaml", " | sort > table.txt", " > table.txt")
    finished.write("table.txt", "written by hand\n")
    assert finished.plan()["table"].reasons == ("output table.txt changed",)
    # An input that no running stage makes.
    finished.dvc("checkout", "--quiet", "--force", "table")
    finished.replace("dvc.yaml", "deps: [filled]", "deps: [filled, in.txt]")
    assert finished.plan()["table"].reasons == ("input in.txt changed",)
    (finished.folder / "in.txt").unlink()
    assert finished.plan()["raw"].reasons == ("input in.txt is missing",)
    (finished.folder / "dvc.lock").unlink()
    assert finished.plan()["raw"].reasons == ("has not run yet", "input in.txt is missing")
    finished.write("dvc.yaml", "stages:\n  hello:\n    cmd: echo hello\n")
    (reason,) = finished.plan()["hello"].reasons
    assert "runs every time" in reason


def test_an_output_that_is_not_in_the_cache_is_made_again(finished: Project) -> None:
    shutil.rmtree(finished.folder / ".dvc" / "cache" / "files")
    assert finished.plan("raw")["raw"].reasons == ("output raw.txt is not in DVC's cache",)


def test_the_plan_command_prints_text_and_json_and_writes_nothing(finished: Project) -> None:
    finished.write("in.txt", "two\n")
    (finished.folder / "table.txt").unlink()
    before = finished.files()
    plan = finished.plan()
    assert actions(plan) == dict.fromkeys(ALL, PERHAPS) | {"raw": RUN, "table": RUN}
    assert finished.files() == before
    text = finished.command("plan", "mask@list")
    assert text.returncode == 0
    assert text.stdout.splitlines() == [
        "run                       raw        input in.txt changed",
        "run if its inputs change  mask@list  after raw",
        "",
        "2 stages: 1 will run, 1 will run if their inputs change, 0 unchanged",
    ]
    document = json.loads(finished.command("plan", "--json").stdout)
    assert document["counts"] == {"run": 2, "run if its inputs change": 6, "unchanged": 0}
    assert document["stages"][0] == {
        "name": "raw",
        "action": "run",
        "reasons": ["input in.txt changed"],
        "changes": [{"kind": "input", "subject": "in.txt"}],
        "after": [],
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


def test_only_a_source_that_changed_or_was_never_read_is_new_data(finished: Project) -> None:
    """As against code and parameters: the deployment 'new-data' waits for it."""

    def changed() -> list[str]:
        return changed_sources(finished.plan(), finished.folder)

    corpus = "    kind: chitchat\n    source: "
    finished.replace("params.yaml", f"{corpus}constraints.txt", f"{corpus}in.txt")
    finished.replace("params.yaml", "top_k, k: 10", "top_k, k: 5")
    finished.replace("dvc.yaml", "cat raw.txt; echo", "cat raw.txt;  echo")
    assert changed() == []
    finished.write("in.txt", "two\n")
    assert changed() == ["in.txt"]
    lock = finished.read("dvc.lock")
    (finished.folder / "dvc.lock").unlink()
    assert changed() == ["in.txt"]
    finished.replace("params.yaml", f"{corpus}in.txt", f"{corpus}constraints.txt")
    assert changed() == []
    # Data under DVC is data too.
    finished.write("dvc.lock", lock)
    finished.dvc("add", "--quiet", "in.txt")
    finished.dvc("repro", "--quiet", "raw")
    finished.write("in.txt", "three\n")
    assert "in.txt.dvc" in changed()
