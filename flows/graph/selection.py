"""Parts of the graph by name: patterns of stages, and values of the dimensions of a matrix or foreach.

The dimensions are those of a cell in ``cells.yaml``; of a matrix its own (``technique`` of ``matrix: {technique: …}``);
of another ``foreach`` the name of its step. ``stage`` and ``step`` are added.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from flows.graph.graph import Graph, Node
from tasks.errors import ParameterError, StageError
from tasks.spelling import nearest


def select(graph: Graph, patterns: Sequence[str] = (), only: Sequence[str] = ()) -> Graph:
    """The selected stages, with everything upstream of them; all without a selection.

    A stage is selected if it matches one of the ``patterns``, if there are any, and for each key of ``only`` one of its
    values. Patterns are names of stages or steps; they and values may have ``*`` and ``?``. ``StageError`` if one
    matches nothing, with the nearest spelling, or if all together match nothing.
    """
    dimensions = {name: _dimensions(node) for name, node in graph.items()}
    chosen = set(graph)
    if patterns:
        chosen = set[str]().union(*(_matched(pattern, graph) for pattern in patterns))
    for key, values in parse_only(only).items():
        known = sorted(set[str]().union(*dimensions.values()))
        if key not in known:
            raise StageError(
                f"--only: {key!r} is no dimension of the graph{nearest(key, known)}; there are: {', '.join(known)}"
            )
        there = {name: of_stage[key] for name, of_stage in dimensions.items() if key in of_stage}
        for value in values:
            if not any(fnmatchcase(one, value) for one in there.values()):
                known = sorted(set(there.values()))
                listed = "" if key == "stage" else f"; there are: {', '.join(known)}"
                raise StageError(f"--only: no stage has {key}={value!r}{nearest(value, known)}{listed}")
        chosen &= {name for name, one in there.items() if any(fnmatchcase(one, value) for value in values)}
    if graph and not chosen:
        given = " and ".join(map(repr, [*patterns, *only]))
        raise StageError(f"no stage fits {given} together; 'palimpsest plan' lists them")
    for name in reversed(graph):
        if name in chosen:
            chosen.update(graph[name].upstream)
    return {name: node for name, node in graph.items() if name in chosen}


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


def _dimensions(node: Node) -> dict[str, str]:
    return {"stage": node.name, "step": node.step, **node.dimensions}


def _matched(pattern: str, graph: Graph) -> set[str]:
    found = {name for name, node in graph.items() if pattern == node.step or fnmatchcase(name, pattern)}
    if not found:
        known = [*graph, *(node.step for node in graph.values())]
        raise StageError(f"no stage matches {pattern!r}{nearest(pattern, known)}; 'palimpsest plan' lists the stages")
    return found
