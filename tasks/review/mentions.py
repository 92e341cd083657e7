"""Identifiers as runs of words: neighbours of one class with only white space between them are one mention."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Labelled(Protocol):
    """A word with its class: of a sidecar, of a technique's findings, or of a review."""

    @property
    def start(self) -> int:
        """The first character in the line."""

    @property
    def end(self) -> int:
        """The offset past the last character."""

    @property
    def label(self) -> str:
        """The class."""


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
