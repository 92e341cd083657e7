"""No output of a command may be one of its inputs, or another output: what was there would be lost.

A command module says which of its options are paths, by their ``dest``. ``READS`` and ``WRITES`` name them (``params``
and ``report`` go without saying), ``STREAMS`` those of both that take ``-`` for standard input or output. ``FILES``
names what is written into the folder ``--output``, whose other files stay; with ``REPLACES`` that folder is replaced
as a whole. ``SEARCHED`` has the patterns, divided by spaces, of what is read in a folder that may hold other things
too.
"""

import argparse
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

from tasks.errors import ParameterError

_STANDARD_STREAM = "-"
_INPUT, _OUTPUT = 0, 1
_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_DESCRIPTORS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_LOST = "what is there would be lost; name another path"
_REPLACED = "one would replace the other; give each a path of its own"

Named = tuple[str, str | Path]
"""What an error calls a path, such as ``--output``, and the path."""


@dataclass(frozen=True)
class _Place:
    """Where a path leads."""

    name: str
    given: str
    path: Path | None
    """Without symbolic links; ``None`` for a standard stream."""
    identity: tuple[int, int] | None
    """Device and number; ``None`` where nothing is there, or what is there can be shared, such as a terminal."""
    patterns: str | None = None
    """Of what is read in a folder; ``None``: all."""

    def __str__(self) -> str:
        return f"{self.name} {self.given!r}"

    def is_same(self, other: "_Place") -> bool:
        """Whether both lead to one file or folder, by whatever name."""
        if self.path is not None and self.path == other.path:
            return True
        return self.identity is not None and self.identity == other.identity

    def is_inside(self, other: "_Place") -> bool:
        """Whether this lies below the other, and belongs to what is read there."""
        if self.path is None or other.path is None or other.path not in self.path.parents:
            return False
        if other.patterns is None:
            return True
        below = self.path.relative_to(other.path).as_posix()
        return self.identity is not None and any(fnmatchcase(below, pattern) for pattern in other.patterns.split())


def refuse_shared_paths(
    read: Iterable[Named],
    written: Iterable[Named],
    *,
    files: Sequence[str] = (),
    replaced: bool = False,
    inside: bool = True,
) -> None:
    """Raise ``ParameterError`` where an output is an input or another output, or lies inside an input.

    An input that does not exist is left to whoever reads it; devices such as ``/dev/null`` can be shared. ``files``
    are what is written into a folder; one that is ``replaced`` as a whole must hold no input. Without ``inside`` an
    output may lie in a folder that is read.
    """
    _compare(list(_inputs(read, {})), written, files, replaced=replaced, inside=inside)


def check_options(module: ModuleType, parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Hold the paths that the options of a command name against each other, before anything is read or written.

    Raises ``ParameterError`` as ``refuse_shared_paths`` does, where ``-`` is given for what is no stream, and for an
    output such as ``/dev/stderr`` that is redirected to a file: the file would be replaced by another of its name.
    ``/dev/stdout`` becomes ``-`` there, where the option takes that.
    """
    names = {action.dest: (*action.option_strings, str(action.metavar))[0] for action in parser._actions}
    streams = getattr(module, "STREAMS", ())

    def named(options: Iterable[str], stream: str) -> Iterator[Named]:
        for option in options:
            for value in _values(getattr(arguments, option, None)):
                if value == _STANDARD_STREAM and option not in streams:
                    raise ParameterError(f"{names[option]} '-': {stream} cannot be given here; give a path")
                yield names[option], value

    for option in (*getattr(module, "WRITES", ()), "report"):
        value = getattr(arguments, option, None)
        if isinstance(value, str) and value.startswith(_DESCRIPTORS) and os.path.isfile(value):
            if option not in streams or value not in _STANDARD_OUTPUT:
                raise ParameterError(
                    f"{names[option]} {value!r} is redirected to a file, which would be replaced instead of written "
                    "into; give the path of a file of its own"
                )
            setattr(arguments, option, _STANDARD_STREAM)
    read = list(named((*getattr(module, "READS", ()), "params"), "standard input"))
    written = list(named((*getattr(module, "WRITES", ()), "report"), "standard output"))
    patterns = {names[option]: found for option, found in getattr(module, "SEARCHED", {}).items()}
    files, replaced = getattr(module, "FILES", ()), getattr(module, "REPLACES", False)
    _compare(list(_inputs(read, patterns)), written, files, replaced=replaced, inside=True)


def _compare(
    inputs: Sequence[_Place], written: Iterable[Named], files: Sequence[str], *, replaced: bool, inside: bool
) -> None:
    outputs: list[_Place] = []
    for name, given in written:
        output = _place(name, str(given), _OUTPUT)
        if output is None:
            continue
        for other in outputs:
            if output.is_same(other) or output.given == other.given:
                raise ParameterError(f"{other} and {output} are the same, and {_REPLACED}")
        for source in inputs:
            if output.is_same(source):
                raise ParameterError(f"{output} is {source}, which is read; {_LOST}")
            if inside and output.is_inside(source):
                raise ParameterError(f"{output} lies in {source}, which is read; name a path outside it")
            if replaced and source.is_inside(output):
                raise ParameterError(f"{source} lies in {output}, which is replaced as a whole; {_LOST}")
        outputs.append(output)
    for folder in outputs:
        for name in files:
            part = _place(folder.name, os.path.join(folder.given, name), _OUTPUT)
            for other in (*inputs, *outputs):
                if part is not None and part.is_same(other):
                    raise ParameterError(f"{other} is {name!r} of {folder}, which is written; {_LOST}")


def _inputs(read: Iterable[Named], patterns: dict[str, str]) -> Iterator[_Place]:
    """Where there is something to read; of ``KIND:PATH`` and ``TECHNIQUE=PATH`` the second half counts too."""
    for name, given in read:
        text = str(given)
        for path in dict.fromkeys((text, *(text.partition(mark)[2] for mark in ":="))):
            place = _place(name, path, _INPUT, patterns.get(name)) if path else None
            if place is not None and (place.path is None or place.identity is not None):
                yield place


def _values(value: object) -> Iterator[str]:
    """The paths of an option that may be given once, several times, or not at all."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        yield from (one for one in value if isinstance(one, str) and one)


def _place(name: str, given: str, standard: int, patterns: str | None = None) -> _Place | None:
    """``None`` for a device or a socket by its name."""
    if given == _STANDARD_STREAM:
        return _Place(name, given, None, _identity(standard))
    # By the name that was given: behind ``/dev/stdout`` there may be a pipe that has no name.
    identity = _identity(given)
    if identity is None and os.path.exists(given):
        return None
    return _Place(name, given, Path(os.path.realpath(given)), identity, patterns)


def _identity(path: str | int) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    of_one = any(kind(found.st_mode) for kind in (stat.S_ISREG, stat.S_ISDIR, stat.S_ISFIFO))
    return (found.st_dev, found.st_ino) if of_one else None
