"""Temporary files and folders beside their targets; what killed writers of a target left is removed by the next one.

A writer holds a lock on what it writes, and the system lifts it when the process ends, however it ends. On a file
system that several machines or containers share, a lock may be seen on one of them alone. So a name says where its lock
is seen: the running system and the mount. What another one wrote, or this one before it was started again, is left.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_ENDING = ".partial"
_RUNNING_SYSTEM = Path("/proc/sys/kernel/random/boot_id")


def partial_file(target: Path) -> tuple[int, str]:
    """A new file beside ``target``, mode 0600: a handle to write by, and its path.

    The lock lasts until the handle and all its copies are closed.
    """

    def make(prefix: str) -> tuple[int, str]:
        return tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_ENDING)

    return _locked(target, make)


def partial_folder(target: Path) -> tuple[int, str]:
    """A new folder beside ``target``, mode 0700: a handle that holds its lock, and its path."""

    def make(prefix: str) -> tuple[int, str]:
        while True:
            path = tempfile.mkdtemp(dir=target.parent, prefix=prefix, suffix=_ENDING)
            with suppress(FileNotFoundError):  # taken for abandoned before it could be locked
                return os.open(path, os.O_RDONLY), path

    return _locked(target, make)


def _locked(target: Path, make: Callable[[str], tuple[int, str]]) -> tuple[int, str]:
    """What ``make`` gives for a beginning of a name, locked; where there are no locks, under a name that nobody takes
    for abandoned."""
    prefix = f".{target.name}."
    if (place := _where_locks_are_seen(target.parent)) is None:
        return make(prefix)
    _remove_abandoned(target.parent, f"{prefix}{place}.")
    while True:
        handle, path = make(f"{prefix}{place}.")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # another writer took it for abandoned, and removes it
        except OSError:
            os.close(handle)
            _remove(path)
            return make(prefix)
        else:
            if os.path.exists(path):
                return handle, path
        os.close(handle)


def _where_locks_are_seen(folder: Path) -> str | None:
    try:
        seen = f"{_RUNNING_SYSTEM.read_text(encoding='ascii')} {folder.stat().st_dev}"
    except OSError:
        return None
    return hashlib.sha256(seen.encode()).hexdigest()[:8]


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what nobody holds a lock on."""
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_ENDING)]
        for path in (folder / name for name in names):
            # Locked, put in place meanwhile, or another user's.
            with suppress(OSError):
                handle = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | os.O_NOFOLLOW)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
                finally:
                    os.close(handle)


def _remove(path: str | Path) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)
