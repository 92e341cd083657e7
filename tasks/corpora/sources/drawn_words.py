"""Rows of words drawn by their published frequency: no language at all, but every common word in any neighbourhood.

A recogniser that hears such rows learns how words sound and little of which word follows which, so it does not hold
on to the language of its training text where people speak otherwise. No row is a sentence that somebody wrote.
"""

from collections.abc import Iterator

import numpy as np

from tasks.corpora.sources.document import Document, Part
from tasks.corpora.sources.published_frequencies import published_frequencies


class DrawnWords:
    """The source ``kind: drawn_words``."""

    parts: tuple[Part | None, ...] = (None,)

    def __init__(self, rows: int, words: int, shortest: int, longest: int, exponent: float, seed: int) -> None:
        """``rows`` of ``shortest`` to ``longest`` of the most frequent ``words``, drawn by frequency to a power."""
        self._rows, self._words, self._exponent, self._seed = rows, words, exponent, seed
        self._shortest, self._longest = shortest, longest
        self.files: list[str] = []

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """One document per row; the same rows each time."""
        frequencies = published_frequencies()
        words = sorted(frequencies, key=lambda word: (-frequencies[word], word))[: self._words]
        weights = np.array([frequencies[word] for word in words]) ** self._exponent
        cumulative = np.cumsum(weights / weights.sum())
        generator = np.random.default_rng(self._seed)
        for _ in range(self._rows):
            length = int(generator.integers(self._shortest, self._longest, endpoint=True))
            drawn = np.searchsorted(cumulative, generator.random(length)).clip(max=len(words) - 1)
            yield Document([" ".join(words[index] for index in drawn)])
