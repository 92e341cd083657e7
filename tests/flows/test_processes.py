"""No process of a run outlives it, however the run or one of its parts dies."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch_project import CHECKOUT

from flows.checkout.run_lock import is_alive
from flows.stages.processes import SERVER_ENDED, Processes, child_environment

SLEEP = "sleep 300 & echo $! > sleeper.pid; wait"
DAEMON = "setsid sh -c 'echo $$ > sleeper.pid; exec sleep 300' & sleep 300"


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def pid_in(folder: Path, name: str = "sleeper.pid") -> int:
    until(lambda: (folder / name).exists() and (folder / name).read_text().strip() != "")
    return int((folder / name).read_text())


def test_a_program_runs_in_the_folder_with_its_status_and_output(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        log = tmp_path / "log"
        process = processes.start(["sh", "-c", "pwd; echo $GREETING; exit 7"], log, {"GREETING": "hello"})
        assert process.wait(20) == 7
    assert log.read_text() == f"{tmp_path}\nhello\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_nothing_that_a_run_starts_leaves_a_core_dump(tmp_path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    with Processes(tmp_path) as processes:
        assert processes.start(["sh", "-c", "ulimit -c; ulimit -Hc"], tmp_path / "log").wait(20) == 0
    assert (tmp_path / "log").read_text() == "0\n0\n"


def test_a_program_that_does_not_exist_ends_with_a_status(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        assert processes.start(["no-such-program"], tmp_path / "log").wait(20) == 70
    assert "FileNotFoundError" in (tmp_path / "log").read_text()


def test_a_killed_program_ends_with_the_signal_and_takes_its_children_along(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        process = processes.start(["sh", "-c", SLEEP], tmp_path / "log")
        sleeper = pid_in(tmp_path)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(20) == -signal.SIGKILL
        until(lambda: not is_alive(sleeper))


@pytest.mark.parametrize("command", [SLEEP, DAEMON, f"trap '' INT TERM; {SLEEP}"])
def test_closing_ends_everything(tmp_path: Path, command: str) -> None:
    """Also what has left its process group, and what ignores being asked."""
    with Processes(tmp_path) as processes:
        process = processes.start(["sh", "-c", command], tmp_path / "log")  # without a name, its line would be closed
        sleeper = pid_in(tmp_path)
        assert is_alive(sleeper)
        assert process.status is None
    until(lambda: not is_alive(sleeper))


@pytest.mark.parametrize("command", [SLEEP, DAEMON])
def test_a_run_killed_with_sigkill_takes_everything_along(tmp_path: Path, command: str) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom flows.stages.processes import Processes\n"
        "processes = Processes('.')\nprocess = processes.start(['sh', '-c', sys.argv[1]], Path('log').absolute())\n"
        "time.sleep(300)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    run = subprocess.Popen([sys.executable, "-c", script, command], cwd=tmp_path, env=environment)
    sleeper = pid_in(tmp_path)
    run.kill()
    run.wait()
    until(lambda: not is_alive(sleeper), 10)


def test_a_killed_server_is_noticed(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    process = processes.start(["sh", "-c", SLEEP], tmp_path / "log")
    sleeper = pid_in(tmp_path)
    processes._server.kill()
    assert process.wait(20) == SERVER_ENDED
    until(lambda: not is_alive(sleeper))
    processes.close()


def test_the_environment_of_stages() -> None:
    commands = str(Path(sys.executable).parent)
    made = child_environment({"PATH": "/usr/bin", "HOME": "/home/a", "DVC_STAGE": "outer", "DVC_ROOT": "/outer"})
    assert made == {"PATH": f"{commands}:/usr/bin", "HOME": "/home/a"}
    assert child_environment(made) == made
