"""Rows of words drawn by their published frequency: no language at all, but every common word in any neighbourhood.

A recogniser that hears such rows learns how words sound and little of which word follows which, so it does not hold
on to the language of its training text where people speak otherwise. No row is a sentence that somebody wrote.
"""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part
from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.settings.base import SourcePath
from tasks.settings.seeds import Seed


class DrawnWordsCorpus(CorpusSettings):
    """Rows of words drawn by published frequency (package ``wordfreq``): no language, for a recogniser to hear."""

    kind: Literal["drawn_words"]
    source: SourcePath
    """The file that pins the package's version."""
    rows: int = Field(default=50_000, ge=1)
    """How many are drawn, before cleaning."""
    words: int = Field(default=20_000, ge=10)
    """How many of the most frequent words they are drawn from."""
    shortest: int = Field(default=2, ge=1)
    """Words of the shortest row."""
    longest: int = Field(default=8, ge=1)
    """Words of the longest row."""
    exponent: float = Field(default=0.7, ge=0, le=1)
    """Words are drawn by their frequency to this power: 1 as they come in text, 0 all alike."""
    seed: Seed = 1
    """Seed of the rows."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest!r}) is above longest ({self.longest!r})")
        return self

    def open(self) -> "DrawnWords":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        return DrawnWords(self.rows, self.words, self.shortest, self.longest, self.exponent, self.seed)


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
        import numpy as np

        frequencies = published_frequencies()
        words = sorted(frequencies, key=lambda word: (-frequencies[word], word))[: self._words]
        weights = np.array([frequencies[word] for word in words]) ** self._exponent
        cumulative = np.cumsum(weights / weights.sum())
        generator = np.random.default_rng(self._seed)
        for _ in range(self._rows):
            length = int(generator.integers(self._shortest, self._longest, endpoint=True))
            drawn = np.searchsorted(cumulative, generator.random(length)).clip(max=len(words) - 1)
            yield Document([" ".join(words[index] for index in drawn)])
