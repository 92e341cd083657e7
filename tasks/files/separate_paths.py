"""No output of a command may be one of its inputs, or another output: its old content would be lost.

The roles of a command's options mark the paths among them (``tasks.options``).
"""

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tasks.errors import ParameterError
from tasks.files.atomic_file import is_parquet, is_pipe_or_device, refuse_folder

STANDARD_STREAM = "-"
STANDARD_NAMES = ("/dev/stdin", "/dev/stdout")
"""Other names of the standard streams."""
_LONGEST_NAME = 255
"""Longest name of a file in bytes, on every usual system."""
_LOST = "its content would be lost; name another path"

Named = tuple[str, str | Path]
"""Name of a path in an error, such as ``--output``, and the path."""


def refuse_shared_paths(
    read: Iterable[Named], written: Iterable[Named], *, files: Sequence[str] = (), replaced: bool = False
) -> None:
    """Raise ``ParameterError`` if an output is an input or another output, also through symbolic links.

    The reader of a missing input reports it; devices such as ``/dev/null`` can be shared. ``files`` are written into a
    folder; one that is ``replaced`` as a whole must not contain an input.
    """
    # Of ``KIND:PATH`` and ``TECHNIQUE=PATH`` the second half is a path, too.
    inputs = [
        (f"{name} {str(given)!r}", _resolved(path))
        for name, given in read
        for path in (str(given), *(str(given).partition(mark)[2] for mark in ":="))
        if path and os.path.exists(path)
    ]
    written = list(written)
    streams = [name for name, given in written if str(given) == STANDARD_STREAM]
    if len(streams) > 1:
        raise ParameterError(f"{' and '.join(streams)} would both go to standard output; give one of them a path")
    outputs = [
        (f"{name} {str(given)!r}", _resolved(given))
        for name, given in written
        if str(given) != STANDARD_STREAM and not is_pipe_or_device(given)
    ]
    for number, (output, place) in enumerate(outputs):
        for other, taken in outputs[:number]:
            if place == taken:
                raise ParameterError(f"{other} and {output} are the same, and one would replace the other; name two")
        for source, found in inputs:
            if place == found:
                raise ParameterError(f"{output} is {source}, which is read; {_LOST}")
            if (replaced or is_parquet(place)) and place in found.parents:
                raise ParameterError(f"{source} is in {output}, which is replaced as a whole; {_LOST}")
        for other, taken in (*inputs, *outputs):
            if taken.parent == place and taken.name in files:
                raise ParameterError(f"{other} is {taken.name!r} of {output}, which is written; {_LOST}")


def refuse_no_path(name: str, path: str, *, is_stream: bool, is_read: bool) -> None:
    """Raise ``ParameterError`` for an impossible path, and for a stream if the option takes none (``is_stream``).

    ``-`` is a stream, and so is a pipe that is read.
    """
    if not path or "\0" in path or max(len(os.fsencode(part)) for part in path.split("/")) > _LONGEST_NAME:
        raise ParameterError(f"{name} {path[:40]!r} is no path; give that of a file or folder")
    if not is_stream and (path == STANDARD_STREAM or (is_read and is_pipe_or_device(path))):
        raise ParameterError(f"{name} {path!r} is a stream, and this option takes none; give the path of a file")


def refuse_unwritable(name: str, path: str | Path, *, is_folder: bool) -> None:
    """Raise ``ParameterError`` if nothing can be written at a path, before hours of work.

    No folder is made for the check: stages that start together share folders. A full disk raises ``OSError`` as the
    writing itself would.
    """
    if str(path) == STANDARD_STREAM or is_pipe_or_device(path):
        return
    if not is_folder:
        refuse_folder(path, of_lines=True)
    elif os.path.isfile(path):
        raise ParameterError(f"{name} {str(path)!r} is a file; name a folder")
    folder = Path(path).resolve().parent
    try:
        # It could exist: no name is too long, no file is in its way.
        with suppress(FileNotFoundError):
            os.lstat(path)
        with tempfile.TemporaryFile(dir=next(one for one in (folder, *folder.parents) if one.exists())):
            pass
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ParameterError(f"{name} {str(path)!r} cannot be written: {error.strerror}; name another path") from None


@contextmanager
def without_empty_folders(written: Iterable[str | Path]) -> Iterator[None]:
    """Remove folders that a failed block made for its outputs and left empty."""
    absent = [Path(path) for path in written if not os.path.exists(path)]
    try:
        yield
    except BaseException:
        for folder in absent:
            with suppress(OSError):  # it has files, or is no folder
                folder.rmdir()
        raise


def overlap(one: str, other: str) -> bool:
    """Whether two paths, as written, are equal or one is inside the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _resolved(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
