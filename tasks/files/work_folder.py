"""Folders of unfinished work that survive a kill: private, named after their output, and locked while in use.

They are outside the outputs, in ``.palimpsest``, because DVC deletes the outputs of a stage before it runs. A folder's
name is ``OUTPUT-KEY``: a hash of the output's path, and a hash of all inputs of the result. The system releases the
lock, ``OUTPUT.lock``, when its process ends in any way.
"""

import hashlib
import shutil
from pathlib import Path

from filelock import FileLock, Timeout

from tasks.errors import ParameterError, PassingError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, PRIVATE_MODE, make_folder


class WorkFolder:
    """Folder of one piece of work, in a ``with`` block; no other process works on the same output inside it."""

    def __init__(self, parent: str | Path, output: str | Path, key: str) -> None:
        """Open or make the folder; folders of the same output with another key are obsolete and are removed.

        Raises ``PassingError`` if another process works on the same output, and ``ParameterError`` if ``parent`` is a
        file.
        """
        if Path(parent).is_file():
            raise ParameterError(f"resources.work_folder {str(parent)!r} is a file; name a folder")
        self.path = work_path(parent, output, key)
        name = self.path.name.partition("-")[0]
        make_folder(parent, private=True)
        # Not of the thread: another thread may close the work.
        self._lock = FileLock(self.path.with_name(f"{name}.lock"), timeout=0, mode=PRIVATE_MODE, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise PassingError(f"another process is making {str(output)!r}; wait for it, or end it first") from None
        for folder in Path(parent).glob(f"{name}-*"):
            if folder != self.path:
                shutil.rmtree(folder, ignore_errors=True)
        make_folder(self.path, private=True).chmod(PRIVATE_FOLDER_MODE)

    def __enter__(self) -> "WorkFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the folder if the output is complete; after an error, leave it to the next run."""
        if kind is None:
            shutil.rmtree(self.path, ignore_errors=True)
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


def work_path(parent: str | Path, output: str | Path, key: str) -> Path:
    """The folder of the work on an output."""
    name = hashlib.sha256(str(Path(output).resolve()).encode()).hexdigest()[:12]
    return Path(parent) / f"{name}-{key[:32]}"
