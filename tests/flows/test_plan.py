"""The plan says which stages run and why, and making it changes nothing."""

import json
import subprocess

import pytest
from scratch_project import ALL, Project

from flows.graph.graph import Action, Graph
from flows.graph.plan import causes
from flows.graph.private_sources import changed_sources

RUN, PERHAPS, UNCHANGED = Action.RUN, Action.PERHAPS, Action.UNCHANGED
K = ("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: 5}")
"""A change of the branch of Top-K."""


def actions(plan: Graph) -> dict[str, Action]:
    return {name: stage.action for name, stage in plan.items()}


def test_a_changed_parameter_concerns_its_branch_only(finished: Project) -> None:
    assert actions(finished.plan()) == dict.fromkeys(ALL, UNCHANGED)
    finished.replace(*K)
    plan = finished.plan()
    expected = {name: RUN if name.endswith("top_k") else UNCHANGED for name in ALL} | {"table": PERHAPS}
    assert actions(plan) == expected
    assert plan["table"].reasons == ("after fill@list-top_k, fill@tagger-top_k",)
    changed = "parameter filling.top_k.k changed from 10 to 5"
    assert causes(plan) == {changed: ["fill@list-top_k", "fill@tagger-top_k"]}


@pytest.mark.parametrize(
    ("change", "stage", "reason"),
    [
        ("rm masked/list.txt", "mask@list", "output masked/list.txt is missing"),
        ("sed -i 's/> table.txt/| sort > table.txt/' dvc.yaml", "table", "its command changed"),
        ("echo by hand > table.txt", "table", "output table.txt changed"),
        ("rm in.txt", "raw", "input in.txt is missing"),
        ("rm -r .dvc/cache/files", "raw", "output raw.txt is not in DVC's cache"),
        ("echo 'stages: {hello: {cmd: echo hello}}' > dvc.yaml", "hello", "runs every time: it has no inputs and "),
    ],
)
def test_each_change_is_a_reason(finished: Project, change: str, stage: str, reason: str) -> None:
    subprocess.run(change, shell=True, cwd=finished.folder, check=True)
    (found,) = finished.plan()[stage].reasons
    assert found.startswith(reason)


def test_the_plan_command_prints_text_and_json_and_writes_nothing(finished: Project) -> None:
    finished.write("in.txt", "two\n")
    (finished.folder / "table.txt").unlink()
    before = finished.files()
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
    assert finished.files() == before


def test_only_a_source_that_changed_or_was_never_read_is_new_data(finished: Project) -> None:
    """As against code and parameters: the deployment 'new-data' waits for it."""

    def changed() -> list[str]:
        return changed_sources(finished.plan(), finished.folder)

    corpus = "    kind: chitchat\n    source: "
    finished.replace("params.yaml", f"{corpus}constraints.txt", f"{corpus}in.txt")
    finished.replace(*K)
    finished.replace("dvc.yaml", "cat raw.txt; echo", "cat raw.txt;  echo")
    assert changed() == []
    finished.write("in.txt", "two\n")
    assert changed() == ["in.txt"]
    # Data under DVC is data too.
    finished.replace("params.yaml", f"{corpus}in.txt", f"{corpus}constraints.txt")
    finished.dvc("add", "--quiet", "in.txt")
    finished.dvc("repro", "--quiet", "raw")
    assert changed() == []
    finished.write("in.txt", "three\n")
    assert "in.txt.dvc" in changed()
    (finished.folder / "dvc.lock").unlink()
    assert changed() == ["in.txt.dvc"]
