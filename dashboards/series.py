"""How a method looks in every plot: one colour and one shape, the same everywhere on the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.records.cells import NO_LANGUAGE_MODEL
from tasks.results.summary.summary_table import Line

_COLOURS = {"baseline0": 0, "baseline1": 1, "top_1": 2, "top_k": 3, "sample": 4, "unigram": 5}
_FURTHER_COLOURS = range(6, 12)


@dataclass(frozen=True, slots=True)
class Series:
    """The look of one method."""

    label: str
    colour: str
    """Class in the style sheet: ``c0`` to ``c11``, ``oracle``, ``pretrained`` or ``alone``."""
    shape: str
    """``square`` for baselines, ``circle`` for fillers, ``diamond`` for controls."""


def series_of(lines: Sequence[Line]) -> dict[tuple[str | None, str], Series]:
    """The look of every line of a table, by filler and method."""
    looks: dict[tuple[str | None, str], Series] = {}
    used: set[int] = set()
    further = 0
    for line in lines:
        if line.method == NO_LANGUAGE_MODEL:
            looks[line.filler, line.method] = Series(line.label, "alone", "circle")
            continue
        if line.method in ("oracle", "pretrained"):
            looks[line.filler, line.method] = Series(line.label, line.method, "circle")
            continue
        colour = _COLOURS.get(line.method)
        if colour is None or colour in used:
            colour = _FURTHER_COLOURS[further % len(_FURTHER_COLOURS)]
            further += 1
        used.add(colour)
        looks[line.filler, line.method] = Series(line.label, f"c{colour}", shape_of(line))
    return looks


def shape_of(line: Line) -> str:
    """The shape that says what kind of method it is."""
    if line.method.startswith("baseline"):
        return "square"
    return "circle" if line.filler else "diamond"
