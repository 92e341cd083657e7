"""Temporary files and folders beside their targets; what killed writers of a target left is removed by the next one.

A writer holds a lock on what it writes, and the system lifts it when the process ends, however it ends. Where a file
system has no locks nothing is taken for abandoned.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import lock_descriptor

_ENDING = ".partial"


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
    """What ``make`` gives for a beginning of a name, locked."""
    prefix = f".{target.name}."
    _remove_abandoned(target.parent, prefix)
    while True:
        handle, path = make(prefix)
        try:
            is_ours = lock_descriptor(handle, blocking=False)
        except OSError:
            is_ours = True  # no locks here
        if is_ours and os.path.exists(path):
            return handle, path
        os.close(handle)  # another writer has taken it for abandoned, and removes it


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what nobody holds a lock on."""
    with suppress(OSError):
        names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_ENDING)]
        for path in (folder / name for name in names):
            # Put in place meanwhile, another user's, or there are no locks.
            with suppress(OSError):
                handle = os.open(path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | os.O_NOFOLLOW)
                try:
                    if lock_descriptor(handle, blocking=False):
                        _remove(path)
                finally:
                    os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
