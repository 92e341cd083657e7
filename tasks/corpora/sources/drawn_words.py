"""Rows of words drawn by their published frequency: no language at all, but every common word in any neighbourhood.

A recogniser that hears such rows learns how words sound and little of which word follows which, so it does not hold
on to the language of its training text where people speak otherwise. No row is a sentence that somebody wrote.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Part
from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.languages.word_lists import listed_languages
from tasks.settings.base import SourcePath
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    import numpy as np

_SWITCH_RATE = 0.16
"""Of Miami's mixed lines: 0.156 a pair of words."""


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
    languages: list[str] = Field(default=["en"], min_length=1)
    """Languages of the words; each row begins with one of them, drawn evenly."""
    switches: Literal["never", "once", "often"] = "never"
    """Where a row changes language: nowhere; at one place (two rows, one behind the other); or before each word with a
    chance of 0.16, as often as people do it in sentences that mix Spanish and English (Bangor Miami)."""
    seed: Seed = 1
    """Seed of the rows."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest!r}) is above longest ({self.longest!r})")
        if self.switches != "never" and len(self.languages) < 2:
            raise ValueError(f"switches is {self.switches!r} and there is one language; give more languages, or never")
        others = set(self.languages) - {"en"}  # whose list is there; to look for others takes a quarter of a second
        if others and (unknown := sorted(others - set(listed_languages()))):
            raise ValueError(f"languages {', '.join(unknown)!r}: wordfreq has no list; give some of its languages")
        return self

    def open(self) -> "DrawnWords":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        return DrawnWords(self)


class DrawnWords:
    """The source ``kind: drawn_words``."""

    parts: tuple[Part | None, ...] = (None,)

    def __init__(self, settings: DrawnWordsCorpus) -> None:
        self._settings = settings
        self.files: list[str] = []

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """One document per row; the same rows each time."""
        import numpy as np

        settings, lists = self._settings, self._lists
        generator = np.random.default_rng(settings.seed)
        for _ in range(settings.rows):
            length = int(generator.integers(settings.shortest, settings.longest, endpoint=True))
            positions = generator.random(length)
            row = []
            for at, position in zip(self._languages(length, generator), positions.tolist(), strict=True):
                words, cumulative = lists[at]
                row.append(words[min(int(np.searchsorted(cumulative, position)), len(words) - 1)])
            yield Document([" ".join(row)])

    @cached_property
    def _lists(self) -> "list[tuple[list[str], np.ndarray]]":
        """Of each language; a corpus is read twice."""
        return [self._weighted(language) for language in self._settings.languages]

    def _weighted(self, language: str) -> "tuple[list[str], np.ndarray]":
        """The most frequent words of a language, and the sums of their weights up to each."""
        import numpy as np

        frequencies = published_frequencies([language])
        words = sorted(frequencies, key=lambda word: (-frequencies[word], word))[: self._settings.words]
        weights = np.array([frequencies[word] for word in words]) ** self._settings.exponent
        return words, np.cumsum(weights / weights.sum())

    def _languages(self, length: int, generator: "np.random.Generator") -> list[int]:
        """Which language each word of a row has; nothing is drawn for one alone."""
        count = len(self._settings.languages)
        if count == 1:
            return [0] * length
        found = [int(generator.integers(count))]
        match self._settings.switches:
            case "never":
                changes = [False] * (length - 1)
            case "once":
                place = int(generator.integers(1, length)) if length > 1 else 0
                changes = [at == place for at in range(1, length)]
            case "often":
                changes = (generator.random(length - 1) < _SWITCH_RATE).tolist()
        for changed in changes:
            found.append((found[-1] + int(generator.integers(1, count))) % count if changed else found[-1])
        return found
