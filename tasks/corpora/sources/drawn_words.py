"""Rows of words drawn by their published frequency: every common word occurs next to any other.

A recogniser trained on such rows learns the sound of words, and little about word order. So it is less bound to the
language of its training text when speakers switch. No row is a sentence that somebody wrote.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Source
from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.languages.word_lists import listed_languages
from tasks.settings.base import SourcePath
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    import numpy as np

_SWITCH_RATE = 0.16
"""Rate in Miami's mixed lines: 0.156 a pair of words."""
_WORDS, _SHORTEST, _LONGEST = 20_000, 2, 8
"""Most frequent words from which rows are drawn, and words of a row."""
_EXPONENT = 0.7
"""Exponent of a word's frequency in the draw: 1 as in text, 0 uniform."""


class DrawnWordsCorpus(CorpusSettings):
    """Rows of words drawn by published frequency (package ``wordfreq``), without word order, for a recogniser."""

    kind: Literal["drawn_words"]
    source: SourcePath
    """The file that pins the package's version."""
    rows: int = Field(default=50_000, ge=1)
    """Number of rows, before cleaning."""
    languages: list[str] = Field(default=["en"], min_length=1)
    """Languages of the words; a row begins with one of them, drawn evenly."""
    switches: Literal["never", "once", "often"] = "never"
    """Language changes in a row: none; one (two rows, one after the other); or before each word with probability 0.16,
    as people do in sentences that mix Spanish and English (Bangor Miami)."""
    seed: Seed = 1
    """Seed of the rows."""

    @model_validator(mode="after")
    def _languages_have_lists(self) -> Self:
        if self.switches != "never" and len(self.languages) < 2:
            raise ValueError(f"switches is {self.switches!r} and there is one language; give more languages, or never")
        others = set(self.languages) - {"en"}  # whose list is there; to look for others takes a quarter of a second
        if others and (unknown := sorted(others - set(listed_languages()))):
            raise ValueError(f"languages {', '.join(unknown)!r}: wordfreq has no list; give some of its languages")
        return self

    def open(self) -> Source:
        """The reader. No word is drawn yet."""
        return Source([], lambda part: self._rows())

    def _rows(self) -> Iterator[Document]:
        """One document per row; the same rows each time."""
        import numpy as np

        lists = self._lists
        generator = np.random.default_rng(self.seed)
        for _ in range(self.rows):
            length = int(generator.integers(_SHORTEST, _LONGEST, endpoint=True))
            positions = generator.random(length)
            row = []
            for at, position in zip(self._languages_of(length, generator), positions.tolist(), strict=True):
                words, cumulative = lists[at]
                row.append(words[min(int(np.searchsorted(cumulative, position)), len(words) - 1)])
            yield Document([" ".join(row)])

    @cached_property
    def _lists(self) -> "list[tuple[list[str], np.ndarray]]":
        """The words and weights of each language; cached, since a corpus is read twice."""
        return [self._weighted(language) for language in self.languages]

    def _weighted(self, language: str) -> "tuple[list[str], np.ndarray]":
        """The most frequent words of a language, and the cumulative sums of their weights."""
        import numpy as np

        frequencies = published_frequencies([language])
        words = sorted(frequencies, key=lambda word: (-frequencies[word], word))[:_WORDS]
        weights = np.array([frequencies[word] for word in words]) ** _EXPONENT
        return words, np.cumsum(weights / weights.sum())

    def _languages_of(self, length: int, generator: "np.random.Generator") -> list[int]:
        """The language of each word of a row; a single language uses no random number."""
        count = len(self.languages)
        if count == 1:
            return [0] * length
        found = [int(generator.integers(count))]
        match self.switches:
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
