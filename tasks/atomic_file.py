"""Files that are either the old one or the complete new one, and private files that only their owner can read."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PRIVATE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
PUBLIC_MODE = 0o644


@contextmanager
def atomic_writer(path: str | Path, *, private: bool = False, binary: bool = False) -> Iterator[IO]:
    """Open a temporary file beside ``path`` and put it in place when the block ends without an error.

    On any error (a full disk, an exception in the block, a signal turned into an exception) the earlier file
    stays as it was. Text is UTF-8 with ``\\n`` line ends. A ``private`` file has mode 0600 from its first byte,
    and a folder made for it 0700. What is no regular file (``/dev/null``, a pipe) is written to directly, and behind a
    symbolic link the file it points to is replaced, not the link.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with (
            _errors_name(target),
            open(target, "wb") if binary else open(target, "w", encoding="utf-8", newline="\n") as stream,
        ):
            yield stream
        return
    make_folder(target.parent, private=private)
    # mkstemp creates with mode 0600, so a private file is never readable by others, not even for a moment.
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
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
