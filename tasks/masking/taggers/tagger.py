"""What a named-entity model is to masking, whatever library it comes from.

Long lines in windows: a line longer than a model takes is seen in overlapping pieces, and nothing is cut off.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """A stretch that a model tags; ``label`` is the model's own entity type."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    score: float | None = None
    """How sure the model is, from 0 to 1; ``None`` where it does not say."""
    source: str = ""
    """Which part of the model, such as a recogniser by pattern; empty where it has no parts."""


class Tagger(ABC):
    """A loaded model."""

    name: str
    """Kind and model, for the sidecar and for errors."""
    languages: tuple[str, ...] = ()
    """The languages (ISO 639-1) that the model says it was trained on; empty where it does not say."""

    @property
    @abstractmethod
    def entity_types(self) -> list[str]:
        """Every entity type that the model can tag, sorted."""

    @abstractmethod
    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line, however long, with its entities in any order; reads lines as a stream."""


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
