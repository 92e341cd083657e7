"""A damaged file of DVC's cache is noticed when it would be restored; DVC 3.67 itself trusts it."""

import hashlib
from pathlib import Path

import pytest
import yaml
from scratch_project import Project, make_project

from flows.graph.graph import open_repository
from flows.graph.plan import make_plan
from flows.runs.preparation import release_dead_locks
from flows.stages.executor import Executor, State
from flows.stages.processes import Processes


def damage(project: Project, path: str) -> str:
    """Change a byte of the cached copy of an output, as a disk does: same size, same mode. Returns the right text."""
    text = project.read(path)
    name = hashlib.md5(text.encode()).hexdigest()
    (cached,) = project.folder.parent.glob(f"**/files/md5/{name[:2]}/{name[2:]}")
    assert cached.read_text(encoding="utf-8") == text
    before = cached.stat()
    cached.chmod(0o644)
    cached.write_text("X" + text[1:], encoding="utf-8")
    cached.chmod(before.st_mode & 0o777)
    (project.folder / path).unlink()
    return text


def test_a_damaged_output_is_computed_and_a_sound_one_restored(finished: Project) -> None:
    right = damage(finished, "masked/list.txt")
    (finished.folder / "masked" / "tagger.txt").unlink()
    with Processes(finished.folder) as processes:
        executor = Executor(processes, finished.folder)
        assert executor.run("mask@list").state is State.RAN
        assert executor.run("mask@tagger").state is State.RESTORED
    assert finished.read("masked/list.txt") == right
    # The cache is sound again.
    (finished.folder / "masked" / "list.txt").unlink()
    assert "is cached" in finished.dvc("repro", "mask@list")
    assert finished.read("masked/list.txt") == right


@pytest.mark.timeout(120)
def test_a_cache_may_lie_elsewhere(finished: Project) -> None:
    (finished.folder / ".dvc" / "cache").rename(finished.folder.parent / "elsewhere")
    with open(finished.folder / ".dvc" / "config", "a", encoding="utf-8") as stream:
        stream.write(f"[cache]\n    dir = {finished.folder.parent / 'elsewhere'}\n")
    right = damage(finished, "masked/list.txt")
    with Processes(finished.folder) as processes:
        assert Executor(processes, finished.folder).run("mask@list").state is State.RAN
    assert finished.read("masked/list.txt") == right


FOLDER = """
stages:
  parts:
    cmd: mkdir -p parts; cp in.txt parts/a.txt; cp in.txt parts/b.txt
    deps: [in.txt]
    outs: [parts]
"""


@pytest.mark.timeout(120)
def test_a_damaged_list_of_a_folders_files(tmp_path: Path) -> None:
    project = make_project(tmp_path / "a project", FOLDER)
    project.dvc("repro")
    (listing,) = project.folder.glob(".dvc/cache/files/md5/*/*.dir")
    listing.chmod(0o644)
    listing.write_bytes(listing.read_bytes().replace(b'"md5"', b'"mx5"'))
    listing.chmod(0o444)
    for file in (project.folder / "parts").iterdir():
        file.unlink()
    (project.folder / "parts").rmdir()
    with Processes(project.folder) as processes:
        outcome = Executor(processes, project.folder).run("parts")
    assert (outcome.state, outcome.error) == (State.RAN, None)
    assert sorted(file.name for file in (project.folder / "parts").iterdir()) == ["a.txt", "b.txt"]


def test_dvc_itself_does_not_notice(finished: Project) -> None:
    """What makes the check necessary; where a later DVC notices, it can go."""
    right = damage(finished, "masked/list.txt")
    finished.dvc("repro", "mask@list")
    assert finished.read("masked/list.txt") != right


def cut_entry(project: Project, stage: str, share: float | None) -> None:
    """Leave what a full disk leaves of a stage's entry in the cache of runs: its folder, and a part of the file."""
    runs = project.folder / ".dvc" / "cache" / "runs"
    for entry in runs.glob("*/*/*"):
        if f"masked/{stage}.txt" in entry.read_text(encoding="utf-8").split("outs:")[1]:
            text = entry.read_bytes()
            entry.unlink()
            if share is not None:
                entry.write_bytes(text[: int(share * len(text))])
    lock = yaml.safe_load(project.read("dvc.lock"))
    del lock["stages"][f"mask@{stage}"]
    project.write("dvc.lock", yaml.safe_dump(lock))
    (project.folder / "masked" / f"{stage}.txt").unlink()


@pytest.mark.parametrize("share", [None, 0.0, 0.6])
def test_an_entry_that_a_full_disk_left_is_no_obstacle(finished: Project, share: float | None) -> None:
    right = finished.read("masked/list.txt")
    cut_entry(finished, "list", share)
    with open_repository(finished.folder) as repository:
        release_dead_locks(repository)
        make_plan(repository)
    with Processes(finished.folder) as processes:
        outcome = Executor(processes, finished.folder).run("mask@list")
    assert (outcome.state, outcome.error) == (State.RAN, None)
    assert finished.read("masked/list.txt") == right
