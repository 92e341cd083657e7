"""No output of a command may be one of its inputs, or another output: what was there would be lost.

A command module says which of its options are paths, by their ``dest``. ``READS`` and ``WRITES`` name them (``params``
and ``report`` go without saying), ``STREAMS`` those of both that may be a standard stream (``-``), a pipe or a device.
``FILES`` names what is written into the folder ``--output``, whose other files stay; with ``REPLACES`` that folder is
replaced as a whole.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

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


def check_options(module: ModuleType, parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Hold the paths that the options of a command name against each other, before anything is read or written.

    Raises ``ParameterError`` as ``refuse_shared_paths`` does, and where an option that is none of ``STREAMS`` is to
    read a stream or to write to ``-``. ``/dev/stdin`` and ``/dev/stdout`` become ``-``.
    """
    names = {action.dest: (*action.option_strings, str(action.metavar))[0] for action in parser._actions}
    streams = getattr(module, "STREAMS", ())

    def named(options: Iterable[str], *, are_read: bool) -> Iterator[Named]:
        for option in options:
            if option in streams and getattr(arguments, option, None) in STANDARD_NAMES:
                setattr(arguments, option, STANDARD_STREAM)
            for value in _values(getattr(arguments, option, None)):
                if option not in streams:
                    refuse_stream_option(names[option], value, is_read=are_read)
                yield names[option], value

    refuse_shared_paths(
        list(named((*getattr(module, "READS", ()), "params"), are_read=True)),
        list(named((*getattr(module, "WRITES", ()), "report"), are_read=False)),
        files=getattr(module, "FILES", ()),
        replaced=getattr(module, "REPLACES", False),
    )


def _resolved(path: str | Path) -> Path:
    return Path(os.path.normcase(os.path.realpath(path)))


def _paths_of(given: str) -> list[str]:
    """What is there to read; of ``KIND:PATH`` and ``TECHNIQUE=PATH`` the second half too."""
    return [path for path in (given, *(given.partition(mark)[2] for mark in ":=")) if path and os.path.exists(path)]


def _values(value: object) -> Iterator[str]:
    """The paths of an option that may be given once, several times, or not at all."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str) and one)
