"""Which stages other clones may compute, and how their results go through a DVC remote."""

import json
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
from scratch_project import CHECKOUT, Project, make_project

from flows.graph.graph import dvc_stages, open_repository, read_graph
from flows.graph.plan import Action, make_plan
from flows.sharing.exchange import NOT_THERE, main
from flows.sharing.shared_session import plan_of
from flows.sharing.shared_stages import SharedStages, classify, shared_stages

GRAPH = """
stages:
  generic:
    cmd: cat in.txt > generic.txt
    deps: [in.txt]
    outs: [generic.txt]
  corpus:
    cmd: cat raw.txt > corpus.txt
    deps: [raw.txt]
    outs: [corpus.txt: {push: false}]
  fill:
    cmd: mkdir filled; sed s/Zyxwquill/Alice/ corpus.txt > filled/text.txt; cp corpus.txt filled/
    deps: [corpus.txt, generic.txt]
    outs:
      - filled/text.txt
      - filled/corpus.txt: {push: false}
  adapt:
    cmd: mkdir model; cat generic.txt filled/text.txt > model/weights.txt
    deps: [generic.txt, filled/text.txt]
    outs: [model]
  folder:
    cmd: cat filled/*.txt > folder.txt
    deps: [filled]
    outs: [folder.txt]
  small:
    cmd: wc -c < model/weights.txt > small.txt
    deps: [model]
    outs: [small.txt: {cache: false}]
  table:
    cmd: cat small.txt generic.txt > table.txt
    deps: [small.txt, generic.txt]
    outs: [table.txt]
"""
"""`folder` and `table` are the end, `small` has an output that DVC does not keep."""
REMOTE = "trusted"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The graph in a commit, with a trusted remote and a plain one beside it; the private text is not in git."""
    made = make_project(tmp_path / "first clone", GRAPH)
    remotes = "".join(f"['remote \"{name}\"']\n    url = {tmp_path / name}\n" for name in (REMOTE, "plain"))
    made.write(".dvc/config", f"[core]\n    check_update = false\n    remote = plain\n{remotes}")
    made.write(".gitignore", "/filled\n/model\n/*.txt\n!/in.txt\n/.palimpsest\n")
    git(made.folder, "add", "--all")
    git(made.folder, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "start")
    made.write("raw.txt", "Zyxwquill went home\n")
    return made


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def exchange(folder: Path, what: str, *arguments: str) -> int:
    with chdir(folder):
        return main([what, REMOTE, *arguments])


def test_a_clone_with_the_private_text_divides_it_and_one_without_waits(project: Project) -> None:
    with open_repository(project.folder) as repository:
        here, by_git = shared_stages(repository)
    own = frozenset({"small"})
    assert here == SharedStages(frozenset({"generic", "corpus", "fill", "adapt"}), own, frozenset())
    assert by_git == SharedStages(frozenset({"generic", "fill", "adapt"}), own, frozenset({"corpus"}))


def test_the_real_graph_shares_all_but_its_ends_and_what_git_holds() -> None:
    with open_repository(CHECKOUT) as repository:
        stages = {name: stage for name, (stage, _) in dvc_stages(repository).items()}
        graph = read_graph(repository)
    # As if everything that git does not ignore were committed.
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT, capture_output=True, text=True
    ).stdout.splitlines()
    found = classify(graph, stages, frozenset(listed) | {str(above) for name in listed for above in Path(name).parents})
    needed = found.needed(graph, found.shared)
    shared, own = ({graph.nodes[name].step for name in names} for names in (needed.shared, needed.own))
    assert {"generic", "corpus", "mask", "fill", "adapt", "evaluate", "recognise"} <= shared
    assert own == {"train_recogniser"}
    assert "publish" not in shared
    assert needed.border == set()


def test_what_is_needed_is_the_wanted_stages_with_what_they_wait_for(project: Project) -> None:
    with open_repository(project.folder) as repository:
        plan = make_plan(repository)
        here, by_git = shared_stages(repository)
    assert here.needed(plan.graph, ["generic", "table"]) == SharedStages(frozenset({"generic"}))
    wanted = here.needed(plan.graph, ["adapt"])
    assert wanted == SharedStages(here.shared)
    assert list(plan_of(plan, wanted).graph.nodes) == ["generic", "corpus", "fill", "adapt"]
    joined = plan_of(plan, by_git.needed(plan.graph, ["adapt"]))
    assert list(joined.graph.nodes) == ["generic", "corpus", "fill", "adapt"]
    assert joined.graph.nodes["corpus"].upstream == ()
    assert {stage.action for stage in joined.stages.values()} == {Action.RUN}


def test_results_go_to_another_clone_through_the_trusted_remote_and_a_plain_push_sends_none(
    project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "second clone")
    git(project.folder, "clone", "--quiet", ".", str(other.folder))
    project.dvc("repro", "adapt")
    told = tmp_path / "told.json"
    assert exchange(project.folder, "push", "generic") == 0
    assert exchange(project.folder, "push", "fill") == 0
    assert exchange(project.folder, "publish", str(told), "corpus") == 0
    outputs = json.loads(told.read_text(encoding="utf-8"))
    assert [output["path"] for output in outputs["corpus"]] == ["corpus.txt"]

    assert exchange(other.folder, "fetch", "generic") == 0
    assert "is cached - skipping run" in other.dvc("repro", "--single-item", "generic")
    assert exchange(other.folder, "take", str(told)) == 0
    assert exchange(other.folder, "fetch", "fill") == 0
    assert "is cached - skipping run" in other.dvc("repro", "--single-item", "fill")
    assert other.read("filled/text.txt") == "Alice went home\n"
    # Nobody has pushed this one: it is computed here, and goes the other way.
    assert exchange(other.folder, "fetch", "adapt") == NOT_THERE
    assert "Running stage 'adapt'" in other.dvc("repro", "--single-item", "adapt")
    assert exchange(other.folder, "push", "adapt") == 0
    shutil.rmtree(project.folder / ".dvc" / "cache")
    shutil.rmtree(project.folder / "model")
    assert exchange(project.folder, "fetch", "adapt") == 0
    assert "is cached - skipping run" in project.dvc("repro", "--single-item", "adapt")
    assert project.read("model/weights.txt") == "one\nAlice went home\n"

    for remote in ("plain", REMOTE):
        project.dvc("push", "--remote", remote)
        other.dvc("push", "--remote", remote)
    held = {
        name: [b"Zyxwquill went" in path.read_bytes() for path in files(tmp_path / name)] for name in ("plain", REMOTE)
    }
    assert not any(held["plain"])
    assert len(held["plain"]) >= 3
    # The corpus, and the copy of it in the fill, by the exchange.
    assert any(held[REMOTE])


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_other_inputs_have_another_result(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "second clone"
    git(project.folder, "clone", "--quiet", ".", str(other))
    project.dvc("repro", "generic")
    assert exchange(project.folder, "push", "generic") == 0
    (other / "in.txt").write_text("two\n", encoding="utf-8")
    assert exchange(other, "fetch", "generic") == NOT_THERE


def test_a_remote_that_cannot_be_written_is_told_in_one_line(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / REMOTE).write_text("no folder", encoding="utf-8")
    project.dvc("repro", "generic")
    assert exchange(project.folder, "push", "generic") != 0
    assert capsys.readouterr().err.startswith("ERROR: ")


def test_sharing_needs_a_server_and_a_remote(project: Project) -> None:
    done = project.command("run", "--share", "generic")
    assert done.returncode == 1
    assert "a Prefect server that all of them reach" in done.stderr
    refused = project.command("run", "--share", "--join")
    assert refused.returncode == 1
    assert "--share leads a run and --join helps another clone's; give one of them" in refused.stderr
