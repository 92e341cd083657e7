"""The plan of a review: which lines are read, in which order, and how likely each was to be drawn."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stratum:
    """A group of lines that are drawn equally often."""

    name: str
    """Such as ``unmasked name-like word``; no word of the text."""
    lines: int
    """Lines of the text that belong to it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A random order of lines, drawn stratum by stratum.

    The first n entries of the queue are a stratified random sample, whatever n is: within each stratum the lines come in
    random order. So a review can stop after any line and be extended later.
    """

    text: str
    """SHA-256 of the text file (plain UTF-8 bytes)."""
    seed: int
    strata: tuple[Stratum, ...]
    queue: tuple[tuple[int, int], ...]
    """Line number from 0, and index of its stratum, in the order of reading."""

    @property
    def lines(self) -> int:
        """Lines of the whole text."""
        return sum(stratum.lines for stratum in self.strata)
