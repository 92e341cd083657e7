"""A damaged file of DVC's cache is noticed when it would be restored; DVC 3.67 itself trusts it."""

import hashlib

from scratch_project import Project

from flows.graph.graph import open_repository
from flows.runs.abandoned_state import release_dead_locks
from flows.stages.executor import Executor, State
from flows.stages.processes import Processes


def damage(project: Project, path: str) -> str:
    """Change a byte of the cached copy of an output, as a disk does: same size, same mode. Returns the right text."""
    text = project.read(path)
    name = hashlib.md5(text.encode()).hexdigest()
    cached = project.folder / ".dvc" / "cache" / "files" / "md5" / name[:2] / name[2:]
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


def test_dvc_itself_does_not_notice(finished: Project) -> None:
    """What makes the check necessary; where a later DVC notices, it can go."""
    right = damage(finished, "masked/list.txt")
    finished.dvc("repro", "mask@list")
    assert finished.read("masked/list.txt") != right


def empty_entry(project: Project, stage: str) -> None:
    """Leave what a full disk leaves of a stage's entry in the cache of runs: its folder without a file."""
    runs = project.folder / ".dvc" / "cache" / "runs"
    for entry in runs.glob("*/*/*"):
        if f"masked/{stage}.txt" in entry.read_text(encoding="utf-8").split("outs:")[1]:
            entry.unlink()
    assert [folder for folder in runs.glob("*/*") if not list(folder.iterdir())]
    project.write("dvc.lock", "schema: '2.0'\nstages: {}\n")
    (project.folder / "masked" / f"{stage}.txt").unlink()


def test_an_entry_that_a_full_disk_left_empty_is_no_obstacle(finished: Project) -> None:
    right = finished.read("masked/list.txt")
    empty_entry(finished, "list")
    with open_repository(finished.folder) as repository:
        release_dead_locks(repository)
    with Processes(finished.folder) as processes:
        outcome = Executor(processes, finished.folder).run("mask@list")
    assert (outcome.state, outcome.error) == (State.RAN, None)
    assert finished.read("masked/list.txt") == right
