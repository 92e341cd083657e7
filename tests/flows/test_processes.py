"""No process of a run outlives it, however the run or one of its parts dies; and one run at a time in a checkout."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from scratch_project import CHECKOUT, until

from flows.checkout import run_lock as lock_of_runs
from flows.checkout.run_lock import is_alive, run_lock
from flows.stages.asking import status_from
from flows.stages.processes import SERVER_ENDED, Processes
from tasks.errors import ResourceError

SLEEP = "sleep 300 & echo $! > sleeper.pid; wait"
DAEMON = "setsid sh -c 'echo $$ > sleeper.pid; exec sleep 300' & sleep 300"


def sleeper_in(folder: Path) -> int:
    file = folder / "sleeper.pid"
    until(lambda: file.exists() and file.read_text().strip() != "", 20)
    return int(file.read_text())


def until_ended(pid: int) -> None:
    until(lambda: not is_alive(pid), 20)


def python(folder: Path, code: str, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=folder, env=environment)


def test_a_program_runs_in_the_folder_with_its_status_and_output_and_no_core_dump(tmp_path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    log, command = tmp_path / "log", "pwd; echo $GREETING; ulimit -c; ulimit -Hc; exit 7"
    with Processes(tmp_path) as processes:
        assert processes.run(["sh", "-c", command], log, {"GREETING": "hello"}, 20) == 7
        assert log.read_text() == f"{tmp_path}\nhello\n0\n0\n"
        assert log.stat().st_mode & 0o777 == 0o600
        assert processes.run(["no-such-program"], log, {}, 20) == 70
        assert "FileNotFoundError" in log.read_text()


@pytest.mark.parametrize(
    ("killed", "status"), [("program", -signal.SIGKILL), ("attendant", SERVER_ENDED), ("server", 0)]
)
def test_whichever_process_is_killed_no_other_is_left(tmp_path: Path, killed: str, status: int) -> None:
    with Processes(tmp_path) as processes:
        line = processes.start(["sh", "-c", SLEEP], tmp_path / "log")
        sleeper = sleeper_in(tmp_path)
        program = psutil.Process(sleeper).parent()
        assert program is not None
        victims = {"program": program, "attendant": program.parent(), "server": psutil.Process(processes._server.pid)}
        victims[killed].kill()
        if killed != "server":
            assert (status_from(line) or SERVER_ENDED) == status
    until_ended(sleeper)


@pytest.mark.parametrize("command", [DAEMON, f"trap '' INT TERM; {SLEEP}"], ids=["daemon", "deaf"])
def test_closing_ends_everything(tmp_path: Path, command: str) -> None:
    """Also what has left its process group, and what ignores being asked."""
    with Processes(tmp_path) as processes:
        line = processes.start(["sh", "-c", command], tmp_path / "log")  # without a name it would be closed
        sleeper = sleeper_in(tmp_path)
        assert is_alive(sleeper)
    assert not is_alive(sleeper)
    assert status_from(line) is not None


def test_a_run_killed_with_sigkill_takes_everything_along(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom flows.stages.processes import Processes\n"
        "processes = Processes('.')\nline = processes.start(['sh', '-c', sys.argv[1]], Path('log').absolute())\n"
        "time.sleep(300)\n"
    )
    run = python(tmp_path, script, DAEMON)
    sleeper = sleeper_in(tmp_path)
    run.kill()
    run.wait()
    until_ended(sleeper)


KILLED = (
    "import os, subprocess; from pathlib import Path; from flows.checkout.run_lock import run_lock\n"
    "with run_lock(Path()) as handle:\n"
    "    subprocess.Popen(['sleep', '1'], pass_fds=[handle], stdout=subprocess.DEVNULL); os._exit(0)"
)


def test_a_lock_that_stages_of_a_killed_run_hold_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder dies, and a child that has inherited the lock lives on for a second."""
    assert python(tmp_path, KILLED).wait() == 0
    with monkeypatch.context() as patch:
        patch.setattr(lock_of_runs, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(ResourceError, match="is at work in this checkout"), run_lock(tmp_path):
            pass
    with run_lock(tmp_path):
        pass


def test_a_second_run_waits_where_it_can(tmp_path: Path) -> None:
    class Waits(Exception):
        pass

    def wait(reason: str) -> None:
        raise Waits(reason)

    with run_lock(tmp_path), pytest.raises(Waits, match=f"process {os.getpid()}"), run_lock(tmp_path, wait):
        pass
    with run_lock(tmp_path, wait):
        pass
