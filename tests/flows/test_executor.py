"""What DVC did with a stage is read from what DVC 3.67 itself says; these tests run it."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from scratch_project import Project

from flows.stages.executor import Executor, State, reason_of, state_of
from flows.stages.processes import Processes


@pytest.fixture
def executor(project: Project) -> Iterator[Executor]:
    with Processes(project.folder) as processes:
        yield Executor(processes, project.folder)


def set_command(project: Project, command: str) -> None:
    project.replace("dvc.yaml", "cmd: cat in.txt in.txt > raw.txt", f"cmd: {command}")


def test_a_stage_runs_then_is_unchanged_then_is_restored(project: Project, executor: Executor) -> None:
    ran = executor.run("raw")
    assert (ran.state, ran.error, ran.log) == (State.RAN, None, ".palimpsest/logs/raw.log")
    assert project.read("raw.txt") == "one\none\n"
    assert executor.run("raw").state is State.UNCHANGED
    (project.folder / "raw.txt").unlink()
    (project.folder / "dvc.lock").unlink()
    assert executor.run("raw").state is State.RESTORED
    assert project.read("raw.txt") == "one\none\n"
    assert "Running stage" not in project.dvc("repro", "raw")


def test_added_data_is_verified_then_unchanged(project: Project, executor: Executor) -> None:
    project.dvc("add", "--quiet", "in.txt")
    assert executor.run("in.txt.dvc").state is State.UNCHANGED
    project.write("in.txt", "two\n")
    assert executor.run("in.txt.dvc").state is State.RAN


def test_a_failed_command_shows_our_error_line_and_nothing_else(project: Project, executor: Executor) -> None:
    set_command(project, r"echo the private words; printf 'palimpsest\072 error\072 K is 0\n' >&2; exit 1")
    failed = executor.run("raw")
    assert (failed.state, failed.error) == (State.FAILED, "K is 0")
    log = project.folder / ".palimpsest" / "logs" / "raw.log"
    assert "the private words" in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_other_failures_are_told_without_quoting_output(project: Project, executor: Executor) -> None:
    command = "cat in.txt in.txt > raw.txt"
    for other, error, may_pass in [
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
        project.replace("dvc.yaml", f"cmd: {command}", f"cmd: {other}")
        command = other
        failed = executor.run("raw")
        assert (failed.state, failed.error, failed.may_pass) == (State.FAILED, error, may_pass)
    assert not (project.folder / "dvc.lock").exists()
    (project.folder / "in.txt").unlink()
    assert "in.txt" in str(executor.run("raw").error)


def test_output_that_imitates_dvc_does_not_change_the_state(project: Project, executor: Executor) -> None:
    set_command(project, "echo \"Stage 'raw' didn't change, skipping\"; echo x > raw.txt")
    assert executor.run("raw").state is State.RAN


def test_a_path_that_another_process_locks_may_be_free_later(project: Project, executor: Executor) -> None:
    rwlock = project.folder / ".dvc" / "tmp" / "rwlock"
    rwlock.parent.mkdir(parents=True, exist_ok=True)
    holder = {"pid": os.getpid(), "cmd": "somebody"}
    rwlock.write_text(json.dumps({"write": {str(project.folder / "in.txt"): holder}}), encoding="utf-8")
    failed = executor.run("raw")
    assert (failed.state, failed.may_pass) == (State.FAILED, True)
    assert "is busy" in str(failed.error)


def test_independent_stages_overlap(project: Project, executor: Executor) -> None:
    stages = "".join(
        f"  {name}:\n    cmd: date +%s.%N > {name}.start; sleep 1; date +%s.%N > {name}.end\n    deps: [in.txt]\n"
        f"    outs: [{name}.start, {name}.end]\n"
        for name in ("left", "right")
    )
    project.write("dvc.yaml", f"stages:\n{stages}")
    threads = [threading.Thread(target=executor.run, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert float(project.read("right.start")) < float(project.read("left.end"))
    assert float(project.read("left.start")) < float(project.read("right.end"))
    assert "Running stage" not in project.dvc("repro")


@pytest.mark.parametrize("command", ["touch begun; sleep 60", "trap '' INT; touch begun; sleep 60"], ids=["", "deaf"])
def test_stopping_ends_a_running_stage_within_seconds(project: Project, executor: Executor, command: str) -> None:
    set_command(project, f"{command}; touch raw.txt")
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(executor.run("raw")))
    thread.start()
    wait_for(project, "begun")
    started = time.monotonic()
    executor.stop()
    thread.join()
    assert time.monotonic() - started < 10
    assert (outcomes[0].state, outcomes[0].error) == (State.FAILED, "stopped before it had finished")
    assert executor.run("raw").state is State.SKIPPED
    assert not (project.folder / "raw.txt").exists()
    assert project.read(".dvc/tmp/rwlock") == "{}"


def test_stages_find_the_commands_of_this_environment_first(project: Project, executor: Executor) -> None:
    set_command(project, "command -v python > raw.txt; umask >> raw.txt")
    assert executor.run("raw").state is State.RAN
    python, mask = project.read("raw.txt").split("\n")[:2]
    assert os.path.dirname(python) == os.path.dirname(sys.executable)
    assert int(mask, 8) == 0o077


def test_the_reason_is_our_own_last_line_or_a_status() -> None:
    text = "Running stage 'raw':\nwords\npalimpsest: internal error: KeyError at a.py:3 in f.\nERROR: failed\n"
    assert reason_of(text, 255, "raw") == "internal error: KeyError at a.py:3 in f."
    assert reason_of("", 255, "raw") == "DVC ended with status 255"
    assert reason_of("", -9, "raw") == "DVC was killed by SIGKILL"
    assert state_of("Stage 'other' didn't change, skipping\n", "raw") is None


def wait_for(project: Project, path: str, text: str = "") -> None:
    deadline = time.monotonic() + 30
    while not (project.folder / path).exists() or text not in project.read(path):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_stage_is_stopped_at_its_limit_with_what_it_started(project: Project) -> None:
    set_command(project, "touch begun; sleep 60; cat in.txt > raw.txt")
    with Processes(project.folder) as processes:
        started = time.monotonic()
        failed = Executor(processes, project.folder, {"raw": 4.0}.get).run("raw")
        assert 4 <= time.monotonic() - started < 20
        assert (project.folder / "begun").exists()
        assert (failed.state, failed.may_pass) == (State.FAILED, False)
        assert failed.error == "it was stopped after 4 seconds, its limit; raise it under resources.time_limits"
    assert not (project.folder / "raw.txt").exists()
