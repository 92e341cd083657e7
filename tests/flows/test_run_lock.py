"""One run per checkout; a killed one blocks nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scratch_project import CHECKOUT

from flows.checkout import run_lock as lock_of_runs
from flows.checkout.run_lock import is_alive, run_lock
from tasks.errors import ResourceError

KILLED = (
    "import os, subprocess; from pathlib import Path; from flows.checkout.run_lock import run_lock\n"
    "with run_lock(Path()) as handle:\n"
    "    subprocess.Popen(['sleep', '1'], pass_fds=[handle], stdout=subprocess.DEVNULL); os._exit(0)"
)


def test_a_lock_that_stages_of_a_killed_run_hold_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder dies, and a child that has inherited the lock lives on for a second."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=True)
    with monkeypatch.context() as patch:
        patch.setattr(lock_of_runs, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(ResourceError, match="is at work in this checkout"), run_lock(tmp_path):
            pass
    with run_lock(tmp_path):
        pass


def test_a_second_run_is_refused_or_waits(tmp_path: Path) -> None:
    said: list[str] = []

    class Waits(Exception):
        pass

    def wait(reason: str) -> None:
        said.append(reason)
        raise Waits

    with run_lock(tmp_path):
        with pytest.raises(ResourceError, match=f"process {os.getpid()}"), run_lock(tmp_path):
            pass
        with pytest.raises(Waits), run_lock(tmp_path, wait):
            pass
    assert len(said) == 1
    with run_lock(tmp_path, wait):
        assert len(said) == 1


def test_a_process_that_has_ended_is_not_alive_though_nobody_has_collected_it() -> None:
    process = subprocess.Popen(["true"])
    time.sleep(0.3)
    assert not is_alive(process.pid)
    process.wait()
    assert is_alive(os.getpid())
