"""Files and folders that are either the old or the complete new one, and private ones for their owner alone.

They are written beside their targets; what killed writers of a target left is removed by the next one. A writer holds a
lock on what it writes, and the system lifts it when the process ends, however it ends. Where a file system has no locks
nothing is taken for abandoned.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import lock_descriptor

from tasks.errors import ParameterError

PRIVATE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
PUBLIC_MODE = 0o644
PUBLIC_FOLDER_MODE = 0o755
_PARTIAL = ".partial"
"""Ending of what is being written."""
PARQUET = ".parquet"
"""The ending of a folder of Parquet files that stands for a text (``tasks.corpora.parquet_lines``), and of each."""


def is_pipe_or_device(path: str | Path) -> bool:
    """Whether a path is there and is neither a regular file nor a folder: a pipe, a socket, a terminal, ``/dev/null``.

    A symbolic link is what it points to; ``/dev/stdout`` is thus a pipe where standard output is one.
    """
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def is_parquet(path: str | Path) -> bool:
    """Whether lines at a path are a folder of Parquet files, or are to become one."""
    return Path(path).suffix.lower() == PARQUET and not is_pipe_or_device(path)


def refuse_folder(path: str | Path, *, of_lines: bool = False) -> None:
    """Raise ``ParameterError`` where a file is to be written and the path is a folder's.

    ``of_lines``: a folder of Parquet files and nothing else may be there, since lines take its place as a whole.
    """
    if not Path(path).is_dir():
        return
    if not (of_lines and is_parquet(path)):
        raise ParameterError(f"cannot write to {str(path)!r}: it is a folder; give the path of a file")
    if other := next((file.name for file in Path(path).iterdir() if not is_parquet(file) or file.is_dir()), None):
        raise ParameterError(
            f"cannot write to {str(path)!r}: it holds {other!r}, which is no Parquet file and would be lost; name "
            "another path"
        )


@contextmanager
def atomic_writer(path: str | Path, *, private: bool = False, binary: bool = False) -> Iterator[IO]:
    """Open a temporary file beside ``path`` and put it in place when the block ends without an error.

    On any error (a full disk, an exception in the block, a signal turned into an exception) the earlier file stays as
    it was; what a killed process had begun to write is removed when the same path is written again. Text is UTF-8 with
    ``\\n`` line ends. A ``private`` file has mode 0600 from its first byte, and a folder made for it 0700. What is no
    regular file (``/dev/null``, a pipe) is written to directly, and behind a symbolic link the file it points to is
    replaced, not the link. A folder raises ``ParameterError``.
    """
    refuse_folder(path)
    if is_pipe_or_device(path):
        # By the name that was given: behind ``/dev/stdout`` there may be a pipe that has no name.
        given = Path(path)
        with (
            _errors_name(given),
            open(given, "wb") if binary else open(given, "w", encoding="utf-8", newline="\n") as stream,
        ):
            yield stream
        return
    target = Path(path).resolve()
    make_folder(target.parent, private=private)
    # Of mode 0600, so that a private file is never readable by others, not even for a moment.
    handle, temporary = _partial_file(target)
    lock = os.dup(handle)
    try:
        with _errors_name(target):
            # The open file owns the handle: closing it before os.replace makes a full disk show up here.
            with (
                os.fdopen(handle, "wb")
                if binary
                else os.fdopen(handle, "w", encoding="utf-8", newline="\n", errors="strict")
            ) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, PRIVATE_MODE if private else PUBLIC_MODE)
            os.replace(temporary, target)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
        os.close(lock)


@contextmanager
def atomic_folder(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a new folder beside ``path`` to write into, and put it in place when the block ends without an error.

    On any error, and after a kill, all is as for ``atomic_writer``. The folder has mode 0755, a ``private`` one 0700;
    the modes of the files in it are the writer's.
    """
    folder = Path(path)
    make_folder(folder.parent, private=private)
    lock, partial = _partial_folder(folder)
    temporary = Path(partial)
    try:
        with _errors_name(folder):
            yield temporary
            temporary.chmod(PRIVATE_FOLDER_MODE if private else PUBLIC_FOLDER_MODE)
            _put_in_place(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(lock)


def _put_in_place(temporary: Path, folder: Path) -> None:
    """Rename over ``folder``; a folder that holds files cannot be renamed over, so it steps aside first."""
    if not folder.exists():
        os.rename(temporary, folder)
        return
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".old"))
    os.rename(folder, aside / folder.name)
    try:
        os.rename(temporary, folder)
    except OSError:
        os.rename(aside / folder.name, folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _errors_name(target: Path) -> Iterator[None]:
    """Let an error of the system that names no file name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(target)
        raise


def make_folder(path: str | Path, *, private: bool = False) -> Path:
    """Create a folder and its parents; a private one gets mode 0700, and so does each parent made for it.

    The mode of the folders is what protects private files in the end: tools that copy files, DVC's checkout among
    them, give the copies the modes of the user's umask.
    """
    folder = Path(path)
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for ancestor in reversed(missing):
        ancestor.mkdir(exist_ok=True, mode=PRIVATE_FOLDER_MODE if private else 0o777)
    return Path(path)


@contextmanager
def private_work_folder(place: str | Path) -> Iterator[Path]:
    """A folder below ``place`` for what is private and thrown away at the end; what a killed process left there, the
    next one removes."""
    make_folder(Path(place), private=True)
    handle, name = _partial_folder(Path(place) / "work")
    try:
        yield Path(name)
    finally:
        os.close(handle)
        shutil.rmtree(name)


def _partial_file(target: Path) -> tuple[int, str]:
    """A new file beside ``target``, mode 0600: a handle to write by, and its path.

    The lock lasts until the handle and all its copies are closed.
    """

    def make(prefix: str) -> tuple[int, str]:
        return tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_PARTIAL)

    return _locked(target, make)


def _partial_folder(target: Path) -> tuple[int, str]:
    """A new folder beside ``target``, mode 0700: a handle that holds its lock, and its path."""

    def make(prefix: str) -> tuple[int, str]:
        while True:
            path = tempfile.mkdtemp(dir=target.parent, prefix=prefix, suffix=_PARTIAL)
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
        names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(_PARTIAL)]
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
