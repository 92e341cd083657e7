"""Parts of the graph by name: patterns of stages, and values of the dimensions of a matrix or foreach.

The dimensions are those of a cell in ``cells.yaml``; of a matrix its own (``technique`` of ``matrix: {technique: …}``);
of another ``foreach`` the name of its step. ``stage`` and ``step`` are added.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tasks.errors import ParameterError, StageError
from tasks.spelling import nearest

if TYPE_CHECKING:
    from flows.graph.graph import Graph, Node

STAGE, STEP = "stage", "step"


@dataclass(frozen=True)
class Selection:
    """A selected part of the graph; everything if it is empty.

    A stage belongs to it if it matches one of the patterns, if there are any, and for each key one of its values.
    """

    patterns: Sequence[str] = ()
    """Names of stages or steps, or names of stages with ``*`` and ``?``."""
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values by dimension, ``stage`` or ``step``; values may have ``*`` and ``?``."""

    def __bool__(self) -> bool:
        return bool(self.patterns or self.only)

    def names_in(self, graph: "Graph") -> set[str]:
        """The names of the stages that belong to it, without their dependencies.

        ``StageError`` if a pattern, key or value matches nothing, with the nearest spelling, or if all together match
        nothing.
        """
        nodes = graph.nodes.values()
        chosen = set(graph.nodes)
        if self.patterns:
            chosen = set[str]().union(*(_matched(pattern, graph) for pattern in self.patterns))
        known = sorted({STAGE, STEP}.union(*(node.dimensions for node in nodes)))
        for key, values in self.only.items():
            if key not in known:
                raise StageError(
                    f"--only: {key!r} is no dimension of the graph{nearest(key, known)}; there are: {', '.join(known)}"
                )
            chosen &= set[str]().union(*(_with_value(key, value, nodes) for value in values))
        if self and not chosen:
            parts = [*self.patterns, *(f"{key}={','.join(values)}" for key, values in self.only.items())]
            raise StageError(f"no stage fits {' and '.join(map(repr, parts))} together; 'palimpsest plan' lists them")
        return chosen


def parse_only(texts: Iterable[str]) -> dict[str, list[str]]:
    """Values by key of ``KEY=VALUE[,VALUE]``; a repeated key has the values of both.

    ``ParameterError`` for a text of another form.
    """
    only: dict[str, list[str]] = {}
    for text in texts:
        key, sign, values = text.partition("=")
        if not sign or not key or not all(values.split(",")) or "=" in values:
            raise ParameterError(
                f"--only: {text!r} is not of the form KEY=VALUE or KEY=VALUE,VALUE; for several keys give --only "
                "several times"
            )
        only.setdefault(key, []).extend(values.split(","))
    return only


def _matched(pattern: str, graph: "Graph") -> set[str]:
    found = {node.name for node in graph.nodes.values() if pattern == node.step}
    found |= {name for name in graph.nodes if fnmatchcase(name, pattern)}
    if not found:
        known = [*graph.nodes, *(node.step for node in graph.nodes.values())]
        raise StageError(f"no stage matches {pattern!r}{nearest(pattern, known)}; 'palimpsest plan' lists the stages")
    return found


def _with_value(key: str, value: str, nodes: "Collection[Node]") -> set[str]:
    found = {node.name for node in nodes for there in _values(key, node) if fnmatchcase(there, value)}
    if not found:
        known = sorted({there for node in nodes for there in _values(key, node)})
        listed = "" if key == STAGE else f"; there are: {', '.join(known)}"
        raise StageError(f"--only: no stage has {key}={value!r}{nearest(value, known)}{listed}")
    return found


def _values(key: str, node: "Node") -> Iterator[str]:
    if key == STAGE:
        yield node.name
    elif key == STEP:
        yield node.step
    elif key in node.dimensions:
        yield node.dimensions[key]
