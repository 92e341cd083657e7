"""At most one ``palimpsest run`` per checkout: a lock file that the kernel releases when its holders are gone."""

import os
import time
from pathlib import Path

from filelock import lock_descriptor, unlock_descriptor

from tasks.errors import ResourceError

STATE_FOLDER = ".palimpsest"
"""Folder of the checkout for logs and state of runs; nothing in it is a result."""
LOCK_FILE = "run.lock"


class RunLock:
    """Holds the lock of one checkout from ``acquire`` until ``release``, or until every process that holds it ends.

    The supervisor of a run inherits ``handle``, so that after a SIGKILL of the run the lock is free only when the
    stages of that run are dead too.
    """

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / STATE_FOLDER / LOCK_FILE
        self.handle = -1

    def acquire(self, patience: float = 20.0) -> None:
        """Take the lock; ``ResourceError`` naming the process where a run is going on.

        Where the run that holds it has just been killed, waits up to ``patience`` seconds for its stages to be
        stopped.
        """
        self._path.parent.mkdir(exist_ok=True, mode=0o700)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience
        while not lock_descriptor(handle, blocking=False):
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            if (holder.isdigit() and is_alive(int(holder))) or time.monotonic() > deadline:
                os.close(handle)
                raise ResourceError(
                    f"another 'palimpsest run' (process {holder or 'unknown'}) is at work in this checkout; "
                    "wait until it has finished, or stop it with 'kill "
                    f"{holder or 'PROCESS'}' (finished stages are kept)"
                )
            time.sleep(0.1)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        self.handle = handle

    def release(self) -> None:
        """Free the lock, also for a supervisor that still holds the inherited handle."""
        if self.handle >= 0:
            os.ftruncate(self.handle, 0)
            unlock_descriptor(self.handle)
            os.close(self.handle)
            self.handle = -1

    def __enter__(self) -> "RunLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_alive(pid: int) -> bool:
    """Whether the process exists and has not ended; one that only waits to be collected by its parent has ended."""
    import psutil

    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
