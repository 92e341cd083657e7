"""No output of a command may be one of its inputs, or another output: what was there would be lost.

Which options of a command are paths, their roles say (``tasks.options``).
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
"""Other names of it."""
_LONGEST_NAME = 255
"""Bytes of the name of a file, on every usual system."""
_LOST = "what is there would be lost; name another path"

Named = tuple[str, str | Path]
"""What an error calls a path, such as ``--output``, and the path."""


def refuse_shared_paths(
    read: Iterable[Named], written: Iterable[Named], *, files: Sequence[str] = (), replaced: bool = False
) -> None:
    """Raise ``ParameterError`` where an output is an input or another output, behind symbolic links too.

    An input that does not exist is left to whoever reads it; devices such as ``/dev/null`` can be shared. ``files``
    are what is written into a folder; one that is ``replaced`` as a whole must hold no input.
    """
    inputs = [(f"{name} {str(given)!r}", _resolved(path)) for name, given in read for path in _paths_of(str(given))]
    outputs: list[tuple[str, Path]] = []
    written = list(written)
    streams = [name for name, given in written if str(given) == STANDARD_STREAM]
    if len(streams) > 1:
        raise ParameterError(f"{' and '.join(streams)} would mix in standard output; give one of them a path")
    for name, given in written:
        if str(given) == STANDARD_STREAM or is_pipe_or_device(given):
            continue
        output, place = f"{name} {str(given)!r}", _resolved(given)
        for other, taken in outputs:
            if place == taken:
                raise ParameterError(
                    f"{other} and {output} are the same, and one would replace the other; give each a path of its own"
                )
        for source, found in inputs:
            if place == found:
                raise ParameterError(f"{output} is {source}, which is read; {_LOST}")
            if (replaced or is_parquet(place)) and place in found.parents:
                raise ParameterError(f"{source} lies in {output}, which is replaced as a whole; {_LOST}")
        outputs.append((output, place))
    for folder, place in outputs:
        for name in files:
            for other, taken in (*inputs, *outputs):
                if taken == place / name:
                    raise ParameterError(f"{other} is {name!r} of {folder}, which is written; {_LOST}")


def refuse_stream_option(name: str, path: str, *, is_read: bool) -> None:
    """Raise ``ParameterError`` where an option that takes no stream is to write to ``-``, or to read one or a pipe."""
    if path == STANDARD_STREAM or (is_read and is_pipe_or_device(path)):
        raise ParameterError(f"{name} {path!r} is a stream, and this option takes none; give the path of a file")


def refuse_no_path(name: str, path: str) -> None:
    """Raise ``ParameterError`` for what can be no path: nothing, or what the system takes for none."""
    longest = max(len(os.fsencode(part)) for part in path.split("/"))
    if not path or "\0" in path or longest > _LONGEST_NAME:
        shown = path if len(path) <= _LONGEST_NAME else f"{path[:40]}..."
        raise ParameterError(f"{name} {shown!r} is no path; give that of a file or folder")


def refuse_unwritable(name: str, path: str | Path, *, is_folder: bool) -> None:
    """Raise ``ParameterError`` where nothing can be written at a path, before hours of work end there.

    Nothing is made on the way: stages that start together share folders. A full disk raises ``OSError`` as the writing
    itself would.
    """
    if str(path) == STANDARD_STREAM or is_pipe_or_device(path):
        return
    if not is_folder:
        refuse_folder(path, of_lines=True)
    elif os.path.isfile(path):
        raise ParameterError(f"{name} {str(path)!r} is a file; name a folder")
    folder = Path(path).resolve().parent
    try:
        # That it can be there at all: no name is too long, no file is on the way.
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
    """Remove folders that the block made for its outputs and left empty, since it failed."""
    absent = [Path(path) for path in written if not os.path.exists(path)]
    try:
        yield
    except BaseException:
        for folder in absent:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def overlap(one: str, other: str) -> bool:
    """Whether two paths are the same or one lies inside the other, as they are written."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _resolved(path: str | Path) -> Path:
    return Path(os.path.normcase(os.path.realpath(path)))


def _paths_of(given: str) -> list[str]:
    """What is there to read; of ``KIND:PATH`` and ``TECHNIQUE=PATH`` the second half too."""
    return [path for path in (given, *(given.partition(mark)[2] for mark in ":=")) if path and os.path.exists(path)]
