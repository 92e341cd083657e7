"""At most one ``palimpsest run`` per checkout: a lock file that the kernel releases when its holders are gone."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import lock_descriptor

from tasks.errors import ResourceError

STATE_FOLDER = ".palimpsest"
"""Folder of the checkout for logs and state of runs; nothing in it is a result."""
FOLDER_VARIABLE = "PALIMPSEST_FOLDER"
"""Environment variable of a worker, or of the container that it starts: the project's folder."""
PATIENCE_SECONDS = 20.0
"""Seconds for the stages of a killed run to end."""


@contextmanager
def run_lock(root: Path, wait: Callable[[str], object] | None = None) -> Iterator[int]:
    """Hold the lock of a checkout inside the block; gives its file handle.

    A process that inherits the handle holds the lock too. So after a SIGKILL of the run, the lock is free when the
    stages of that run have ended. ``ResourceError`` if another run is at work. With ``wait``, that function is called
    with the reason, and the lock is waited for.
    """
    path = root / STATE_FOLDER / "run.lock"
    path.parent.mkdir(exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not lock_descriptor(handle, blocking=False):
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            if (holder.isdigit() and is_alive(int(holder))) or time.monotonic() > deadline:
                reason = (
                    f"another 'palimpsest run' (process {holder or 'unknown'}) is at work in this checkout; wait until "
                    f"it has finished, or stop it with 'kill {holder or 'PROCESS'}' (finished stages are saved)"
                )
                if wait is None:
                    raise ResourceError(reason)
                wait(reason)
                lock_descriptor(handle, poll_interval=1.0)
                break
            time.sleep(0.1)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        try:
            yield handle
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def is_alive(pid: int) -> bool:
    """Whether the process exists and has not ended; a zombie, which waits for its parent, has ended."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
