"""Folders of unfinished work that survive a kill: private, named by what they belong to, and locked while in use.

They lie outside the outputs, under ``.palimpsest``, because DVC deletes the outputs of a stage before it runs. A
folder's name is ``OUTPUT-KEY``: a hash of the output's path, and a hash of everything that decides the result. The
system lifts the lock when the process that holds it ends, however it ends.
"""

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from tasks.errors import ParameterError, ResourceError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, PRIVATE_MODE, make_folder

LOCK = "lock"
_DAYS_KEPT = 30


class WorkFolder:
    """The folder of one piece of work; nobody else uses it while it is open."""

    def __init__(self, parent: str | Path, output: str | Path, key: str) -> None:
        """Open or make the folder.

        Folders of the same output with another key are of no use any more and are removed, as are those that nobody
        has asked for in 30 days. Raises ``ResourceError`` where another process works on the same output, and
        ``ParameterError`` where ``parent`` is a file.
        """
        if Path(parent).is_file():
            raise ParameterError(f"resources.work_folder {str(parent)!r} is a file; name a folder")
        self.path = work_path(parent, output, key)
        name = self.path.name.split("-")[0]
        self._lock = _locked(self.path)
        if self._lock is None:
            raise ResourceError(f"another process is making {str(output)!r}; wait for it, or end it first")
        _remove_stale(Path(parent), name, self.path)

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Leave the folder to the next run."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def work_path(parent: str | Path, output: str | Path, key: str) -> Path:
    """The folder of the work on an output."""
    name = hashlib.sha256(str(Path(output).resolve()).encode()).hexdigest()[:12]
    return Path(parent) / f"{name}-{key[:32]}"


def _locked(folder: Path) -> FileLock | None:
    """Make the folder and lock it; ``None`` where another process holds the lock."""
    # Not of the thread: whoever closes the work need not be who opened it.
    lock = FileLock(folder / LOCK, timeout=0, mode=PRIVATE_MODE, thread_local=False)
    while True:
        make_folder(folder, private=True)
        folder.chmod(PRIVATE_FOLDER_MODE)
        # A process that had just finished with it may have removed it in between.
        with suppress(FileNotFoundError):
            try:
                lock.acquire()
            except Timeout:
                return None
            os.utime(folder)
            return lock


def _remove_stale(parent: Path, output_name: str, own: Path) -> None:
    oldest = time.time() - _DAYS_KEPT * 24 * 3600
    for folder in parent.iterdir():
        if folder == own or not (folder / LOCK).is_file():
            continue
        try:
            stale = folder.name.startswith(f"{output_name}-") or folder.stat().st_mtime < oldest
        except FileNotFoundError:
            continue
        if not stale:
            continue
        lock = _locked(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()
