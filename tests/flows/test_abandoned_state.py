"""What killed DVC processes leave behind is put right; what living ones hold is left alone."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from scratch_project import Project

from flows.graph.graph import open_repository
from flows.runs.preparation import release_dead_locks, set_torn_record_aside
from tasks.errors import StageError


def repaired(project: Project) -> list[str]:
    with open_repository(project.folder) as repository:
        return release_dead_locks(repository) + set_torn_record_aside(repository)


def write_locks(project: Project, locks: dict[str, Any] | str) -> None:
    project.write(".dvc/tmp/rwlock", locks if isinstance(locks, str) else json.dumps(locks))


def test_locks_of_the_dead_go_and_those_of_the_living_stay(finished: Project) -> None:
    ended = subprocess.Popen(["true"])  # not collected: its number still exists
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "repro", "mask"])
    living = {"pid": sleeper.pid, "cmd": "dvc repro mask"}
    dead = {"pid": ended.pid, "cmd": "dvc repro mask"}
    reused = {"pid": os.getpid(), "cmd": "dvc repro some-stage-that-this-process-never-ran"}
    forked = {"pid": sleeper.pid, "cmd": "dvc-under-palimpsest repro mask"}
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    try:
        write_locks(
            finished,
            {
                "write": {"/a": dead, "/b": living, "/c": reused, "/d": forked},
                "read": {"/e": [dead, living], "/f": [dead]},
            },
        )
        assert repaired(finished) == ["removed locks that a killed DVC process had left"]
        assert json.loads(finished.read(".dvc/tmp/rwlock")) == {"write": {"/b": living}, "read": {"/e": [living]}}
    finally:
        sleeper.kill()
        sleeper.wait()
        ended.wait()


def test_a_torn_file_of_locks_and_an_unfinished_write_of_ours_are_removed(finished: Project) -> None:
    before = finished.files()
    assert repaired(finished) == []
    for text in ["", '{"write": {"/a": {"pid": 1,', '{"write": 3}']:
        write_locks(finished, text)
        assert repaired(finished) == ["removed locks that a killed DVC process had left"]
    assert "didn't change" in finished.dvc("repro", "raw")
    finished.write("dvc.lock.partial", "schema")
    assert repaired(finished) == []
    assert finished.files() == before


def test_a_torn_record_is_set_aside_and_everything_is_restored(finished: Project) -> None:
    whole = finished.read("dvc.lock")
    finished.write("dvc.lock", whole[: len(whole) // 2].rstrip() + "\n    bro")
    (done,) = repaired(finished)
    assert done.startswith("dvc.lock was cut off")
    assert not (finished.folder / "dvc.lock").exists()
    (kept,) = (finished.folder / ".palimpsest").glob("dvc.lock.torn-*")
    assert kept.name in done
    output = finished.dvc("repro")
    assert output.count("is cached - skipping run") == 8
    assert "Running stage" not in output
    assert finished.read("dvc.lock") == whole


def test_an_unresolved_merge_is_left_to_its_owner(finished: Project) -> None:
    text = "<<<<<<< ours\n" + finished.read("dvc.lock")
    finished.write("dvc.lock", text)
    with pytest.raises(StageError, match="unresolved merge"):
        repaired(finished)
    assert finished.read("dvc.lock") == text
