"""One run per checkout; a killed one blocks nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scratch_project import CHECKOUT

from flows.checkout.run_lock import RunLock, is_alive
from tasks.errors import ResourceError

HOLD = (
    "import time; from flows.checkout.run_lock import RunLock; lock = RunLock('.'); lock.acquire(); "
    "print('held', flush=True); "
)


def start_holder(folder: Path, then: str = "time.sleep(300)") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD + then], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_lock_that_stages_of_a_killed_run_still_hold_is_waited_for(tmp_path: Path) -> None:
    """The holder dies, and a child that has inherited the lock lives on for a second."""
    then = (
        "import os, subprocess; "
        "subprocess.Popen(['sleep', '1'], pass_fds=[lock.handle], stdout=subprocess.DEVNULL); os._exit(0)"
    )
    holder = start_holder(tmp_path, then)
    holder.wait()
    with pytest.raises(ResourceError):
        RunLock(tmp_path).acquire(patience=0.0)
    started = time.monotonic()
    with RunLock(tmp_path):
        assert 0.3 < time.monotonic() - started < 15


def test_releasing_frees_the_lock_for_an_inheritor_too(tmp_path: Path) -> None:
    first = RunLock(tmp_path)
    first.acquire()
    inherited = os.dup(first.handle)
    first.release()
    with RunLock(tmp_path):
        pass
    os.close(inherited)


def test_a_process_that_has_ended_is_not_alive_though_nobody_has_collected_it() -> None:
    process = subprocess.Popen(["true"])
    time.sleep(0.3)
    assert not is_alive(process.pid)
    process.wait()
    assert is_alive(os.getpid())
