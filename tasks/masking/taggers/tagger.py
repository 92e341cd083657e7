"""What a named-entity model is to masking, whatever library it comes from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")


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


def blocks(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Consecutive lists of ``size`` items, the last one shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, size)):
        yield block
