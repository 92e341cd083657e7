"""Identifiers as runs of words: neighbours of one class with nothing but white space between them are one mention."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Labelled(Protocol):
    """A word with its class: of a sidecar, of a technique's findings, or of a review."""

    @property
    def start(self) -> int:
        """First character in the line."""

    @property
    def end(self) -> int:
        """The character past its last."""

    @property
    def label(self) -> str:
        """Its class."""


Word = TypeVar("Word", bound=Labelled)


def mentions(line: str, words: Iterable[Word]) -> list[list[Word]]:
    """The mentions of a line, in order; ``words``: its labelled words in order."""
    found: list[list[Word]] = []
    for word in words:
        last = found[-1][-1] if found else None
        if last and last.label == word.label and not line[last.end : word.start].strip():
            found[-1].append(word)
        else:
            found.append([word])
    return found
