"""What DVC did with a stage is read from what DVC 3.67 itself says; these tests run it."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch_project import GRAPH, Project, make_project

from flows.stages.executor import Outcome, State, reason_of, run_stage
from flows.stages.processes import Processes

RAW = "cat in.txt in.txt > raw.txt"


RunStage = Callable[[str], Outcome]


@pytest.fixture
def run(served: Project, dvc_server: Processes) -> RunStage:
    """Runs a stage of the project, in which nothing has run yet."""
    return lambda name: run_stage(name, dvc_server)


def set_command(project: Project, command: str, before: str = RAW) -> None:
    project.replace("dvc.yaml", f"cmd: {before}", f"cmd: {command}")


def test_a_stage_runs_then_is_unchanged_then_is_restored(served: Project, run: RunStage) -> None:
    ran = run("raw")
    assert (ran.state, ran.error, ran.log) == (State.RAN, None, ".palimpsest/logs/raw.log")
    assert served.read("raw.txt") == "one\none\n"
    assert run("raw").state is State.UNCHANGED
    (served.folder / "raw.txt").unlink()
    (served.folder / "dvc.lock").unlink()
    assert run("raw").state is State.RESTORED
    assert served.read("raw.txt") == "one\none\n"
    assert "Running stage" not in served.dvc("repro", "raw")
    served.dvc("add", "--quiet", "in.txt")
    assert run("in.txt.dvc").state is State.UNCHANGED
    served.write("in.txt", "two\n")
    assert run("in.txt.dvc").state is State.RAN


def test_a_failed_command_shows_our_error_line_or_a_reason_and_no_other_output(served: Project, run: RunStage) -> None:
    command, log = RAW, served.folder / ".palimpsest" / "logs" / "raw.log"
    for other, error, may_pass in [
        (r"printf 'private words\npalimpsest\072 error\072 K is 0\n' >&2; exit 1", "K is 0", False),
        ("echo private words >&2; exit 3", "its command ended with status 3", False),
        (
            "kill -9 $$",
            "its command was killed (SIGKILL), as the system does when memory runs out; "
            "lower resources.parallel_stages, or take smaller models",
            True,
        ),
        ("kill -15 $$", "its command was killed by SIGTERM", False),
        ("'true'", "output 'raw.txt' does not exist", False),
    ]:
        set_command(served, other, command)
        command = other
        failed = run("raw")
        assert (failed.state, failed.error, failed.may_pass) == (State.FAILED, error, may_pass)
        assert ("private words" in log.read_text(encoding="utf-8")) == ("private words" in other)
    assert [path.stat().st_mode & 0o777 for path in (log, log.parent)] == [0o600, 0o700]
    assert not (served.folder / "dvc.lock").exists()
    (served.folder / "in.txt").unlink()
    assert "in.txt" in str(run("raw").error)
    assert reason_of("", -9, "raw") == "DVC was killed by SIGKILL"


def test_a_path_that_another_process_locks_may_be_free_later(served: Project, run: RunStage) -> None:
    holder = {"pid": os.getpid(), "cmd": "somebody"}
    served.write(".dvc/tmp/rwlock", json.dumps({"write": {str(served.folder / "in.txt"): holder}}))
    failed = run("raw")
    assert (failed.state, failed.may_pass) == (State.FAILED, True)
    assert "is busy" in str(failed.error)


def test_a_stage_is_stopped_at_its_limit_with_what_it_started(served: Project, dvc_server: Processes) -> None:
    set_command(served, "touch begun; sleep 60; cat in.txt > raw.txt")
    started = time.monotonic()
    failed = run_stage("raw", dvc_server, 3.0)
    assert 3 <= time.monotonic() - started < 20
    assert (served.folder / "begun").exists()
    assert (failed.state, failed.may_pass) == (State.FAILED, False)
    assert failed.error == "it was stopped after 3 seconds, its limit; raise it under resources.time_limits"
    assert not (served.folder / "raw.txt").exists()


def test_stages_find_the_commands_of_this_environment_first(served: Project, run: RunStage) -> None:
    """Their output does not change the state, though it imitates DVC's."""
    set_command(served, "echo \"Stage 'raw' didn't change, skipping\"; command -v python > raw.txt; umask >> raw.txt")
    assert run("raw").state is State.RAN
    python, mask = served.read("raw.txt").split("\n")[:2]
    assert os.path.dirname(python) == os.path.dirname(sys.executable)
    assert int(mask, 8) == 0o077


OTHER = """
  other:
    cmd: |
      echo a word and another one and still more words until the line is longer than eighty characters or more
      # 'q: "'
      cat masked/list.txt > other.txt
    deps: [masked/list.txt]
    outs: [other.txt]
"""


def test_dvc_lock_is_the_one_that_dvc_writes(served: Project, run: RunStage, tmp_path: Path) -> None:
    """Byte for byte, first time and again after a change; also with a person's remark in it."""
    peer = make_project(tmp_path / "peer", GRAPH + OTHER)
    served.write("dvc.yaml", GRAPH + OTHER)
    names = ["raw", "mask@list", "other"]
    for number, end in enumerate(("", "", "# a remark\n")):
        for project in (served, peer):
            project.write("in.txt", f"{number}\n")
            if number:
                project.write("dvc.lock", project.read("dvc.lock") + end)
        assert {run(name).state for name in names} == {State.RAN}
        peer.dvc("repro", *names)
        assert served.read("dvc.lock") == peer.read("dvc.lock")
    assert "Running stage" not in served.dvc("repro", *names)
