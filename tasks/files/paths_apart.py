"""No output of a command may be one of its inputs, or another output: what was there would be lost.

Which options of a command are paths, their roles say (``tasks.options``).
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tasks.errors import ParameterError
from tasks.files.atomic_file import is_pipe_or_device

STANDARD_STREAM = "-"
STANDARD_NAMES = ("/dev/stdin", "/dev/stdout")
"""Other names of it."""
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
            if replaced and place in found.parents:
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


def _resolved(path: str | Path) -> Path:
    return Path(os.path.normcase(os.path.realpath(path)))


def _paths_of(given: str) -> list[str]:
    """What is there to read; of ``KIND:PATH`` and ``TECHNIQUE=PATH`` the second half too."""
    return [path for path in (given, *(given.partition(mark)[2] for mark in ":=")) if path and os.path.exists(path)]
