"""Files and folders that are either the old or the complete new one; only their owner can read private ones.

They are written under another name next to their targets and renamed at the end. That name has the host and the
process: the next writer of a target removes the leftovers of dead processes.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from tasks.errors import ParameterError

PRIVATE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
PUBLIC_MODE = 0o644
PUBLIC_FOLDER_MODE = 0o755
_PARTIAL = ".partial"
"""Ending of unfinished files."""
PARQUET = ".parquet"
"""Ending of a folder of Parquet files with a text (``tasks.corpora.parquet_lines``), and of its files."""


def is_pipe_or_device(path: str | Path) -> bool:
    """Whether a path exists as neither a regular file nor a folder: a pipe, a socket, a terminal, ``/dev/null``.

    A symbolic link counts as its target; so ``/dev/stdout`` is a pipe if standard output is one.
    """
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def is_parquet(path: str | Path) -> bool:
    """Whether lines at a path are a folder of Parquet files, or will become one."""
    return Path(path).suffix.lower() == PARQUET and not is_pipe_or_device(path)


def refuse_folder(path: str | Path, *, of_lines: bool = False) -> None:
    """Raise ``ParameterError`` if the path of a file to write is a folder.

    ``of_lines``: only a folder of Parquet files may be there, since lines replace it as a whole.
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
    """Open a temporary file next to ``path`` and rename it to ``path`` when the block ends without an error.

    On any error (a full disk, an exception in the block, a signal turned into an exception) the earlier file is
    unchanged. Text is UTF-8 with ``\\n`` line ends. A ``private`` file has mode 0600 from its first byte, and a folder
    that is made for it 0700. A pipe or device is written to directly. For a symbolic link its target is replaced, not
    the link. A folder raises ``ParameterError``.
    """
    refuse_folder(path)
    if is_pipe_or_device(path):
        # By the given name: ``/dev/stdout`` may be a pipe without a name.
        with _errors_name(Path(path)), _opened(path, binary=binary) as stream:
            yield stream
        return
    target = Path(path).resolve()
    make_folder(target.parent, private=private)
    # Of mode 0600, so that a private file is never readable by others, not even for a moment.
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=_PARTIAL)
    try:
        with _errors_name(target):
            # The file is closed before it is renamed, so that a full disk shows up here.
            with _opened(handle, binary=binary) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, PRIVATE_MODE if private else PUBLIC_MODE)
            os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """A new folder next to ``path``, and rename it to ``path`` when the block ends without an error.

    On any error the earlier folder is unchanged. The folder has mode 0755, a ``private`` one 0700; the modes of the
    files in it are the writer's.
    """
    folder = Path(path)
    make_folder(folder.parent, private=private)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder), suffix=_PARTIAL))
    earlier = temporary.with_suffix(f".earlier{_PARTIAL}")
    try:
        with _errors_name(folder):
            yield temporary
            temporary.chmod(PRIVATE_FOLDER_MODE if private else PUBLIC_FOLDER_MODE)
            # No folder can be renamed over one that has files.
            if folder.exists():
                os.rename(folder, earlier)
            os.rename(temporary, folder)
    finally:
        if earlier.exists() and not folder.exists():
            os.rename(earlier, folder)
        for rest in (temporary, earlier):
            shutil.rmtree(rest, ignore_errors=True)


@contextmanager
def private_work_folder(place: str | Path) -> Iterator[Path]:
    """A folder in ``place`` for private temporary files."""
    prefix = _prefix(make_folder(place, private=True) / "work")
    with tempfile.TemporaryDirectory(dir=place, prefix=prefix, suffix=_PARTIAL) as folder:
        yield Path(folder)


def _opened(file: str | Path | int, *, binary: bool) -> IO:
    return open(file, "wb") if binary else open(file, "w", encoding="utf-8", newline="\n")


@contextmanager
def _errors_name(target: Path) -> Iterator[None]:
    """Add this file name to a system error without one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(target)
        raise


def make_folder(path: str | Path, *, private: bool = False) -> Path:
    """Create a folder and its parents; a private one gets mode 0700, and so does each parent made for it.

    The mode of the folders is the protection of private files: tools that copy files, such as DVC's checkout, give the
    copies the modes of the user's umask.
    """
    folder = Path(path)
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(exist_ok=True, mode=PRIVATE_FOLDER_MODE if private else 0o777)
    return folder


def _prefix(target: Path) -> str:
    """The prefix of this process for a target's names; remove the leftovers of dead processes of this host."""
    of_host = f".{target.name}.{socket.gethostname()[:16]}."
    # Another user's are left, and those in a folder that cannot be listed.
    with suppress(OSError):
        for path in [path for path in target.parent.iterdir() if path.name.startswith(of_host)]:
            process = path.name.removeprefix(of_host).partition(".")[0]
            if process.isdecimal() and not psutil.pid_exists(int(process)):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return f"{of_host}{os.getpid()}."
