"""Long lines in windows: a line longer than a model takes is seen in overlapping pieces, and nothing is cut off."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a line; only what begins between ``core_start`` and ``core_end`` is taken from it."""

    start: int
    end: int
    core_start: int
    core_end: int


def windows(text: str, longest: int, overlap: int) -> Iterator[Window]:
    """Windows of at most ``longest`` characters, neighbours sharing about ``overlap``; their cores cover the text once.

    Borders are put behind white space where there is some within ``overlap``, so that words stay whole. Requires
    ``2 * overlap < longest``. The empty text has one empty window.
    """
    start = core_start = 0
    while True:
        if len(text) - start <= longest:
            yield Window(start, len(text), core_start, len(text))
            return
        end = _behind_space(text, start + longest, overlap)
        core_end = _behind_space(text, end - overlap // 2, overlap // 4)
        yield Window(start, end, core_start, core_end)
        start = _behind_space(text, end - overlap, overlap // 4)
        core_start = core_end


def _behind_space(text: str, position: int, reach: int) -> int:
    """The place behind the last white space that is at most ``reach`` before a position, or the position itself."""
    for place in range(position, max(position - reach, 0), -1):
        if text[place - 1].isspace():
            return place
    return position
