"""The vocabulary threshold (paper 3.1, ``vocabThres``): keep the N most frequent words of a generic vocabulary.

The vocabulary is the ``vocabulary_size`` most frequent folded words of generic text; counts of different casings are
added up. Ties are ordered by code points, so the choice depends on nothing else. Without a generic text, the words come
from the published frequencies of the package ``wordfreq``, which covers many kinds of English text. They hold no
numbers, so all numbers are masked.
"""

from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from tasks.corpora.sources.published_frequencies import published_frequencies
from tasks.corpora.text_lines import read_lines
from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.words import fold
from tasks.errors import CorpusError, ParameterError
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.settings import TechniqueSettings


class VocabularyThreshold(TechniqueSettings):
    """Keep the most frequent words of a vocabulary built on generic text, mask all others."""

    sentence: ClassVar[str] = "Keep the most frequent words of generic text, mask all others."
    kind: Literal["vocabulary_threshold"]
    allowed_words: int = Field(default=10_000, ge=1)
    """N: number of the most frequent words that stay unmasked (paper: 10,000)."""
    vocabulary_size: int = Field(default=85_000, ge=1)
    """Size of the vocabulary from which the N words are taken (paper: 85,000)."""
    path: str | None = None
    """File with your own vocabulary, one word a line, the most frequent first. ``null``: word counts of generic text,
    or else published frequencies."""

    @model_validator(mode="after")
    def _threshold_is_inside(self) -> "VocabularyThreshold":
        if self.allowed_words > self.vocabulary_size:
            raise ValueError(
                f"allowed_words {self.allowed_words!r} is more than vocabulary_size {self.vocabulary_size!r}"
            )
        return self

    def build(self, word_counts: str | None, threads: int) -> AllowedWords:
        """The technique with a user's vocabulary, with word counts, or else with published frequencies.

        Raises ``ParameterError`` if there are fewer than N words.
        """
        if self.path is not None:
            entries = dict.fromkeys(fold(line.strip()) for line in read_lines(self.path, "word list"))
            words = _not_empty([entry for entry in entries if entry], self.path)
            where = self.path
        elif word_counts is not None:
            words = _not_empty(_by_frequency(read_word_counts(word_counts)), word_counts)
            where = str(word_counts)
        else:
            where = f"published frequencies of wordfreq {version('wordfreq')}"
            words = _by_frequency(published_frequencies().items())
        words = words[: self.vocabulary_size]
        if self.allowed_words > len(words):
            raise ParameterError(
                f"allowed_words: {self.allowed_words!r} is more than the {len(words)} words of the "
                f"vocabulary ({where}, vocabulary_size {self.vocabulary_size}); lower it, or count words on more text"
            )
        ranks = {word: rank for rank, word in enumerate(words, start=1)}

        def reason(folded_word: str) -> str:
            if folded_word not in ranks:
                return f"not in the vocabulary of {len(words):,} words"
            rank = ranks[folded_word]
            return f"rank {rank:,} of the vocabulary; the first {len(technique.allowed_words):,} stay unmasked"

        technique = AllowedWords(words[: self.allowed_words], self.kind, reason)
        technique.languages = ("en",) if self.path is word_counts is None else ()
        return technique

    @property
    def files(self) -> list[str]:
        """The user's vocabulary file, if any."""
        return [self.path] if self.path else []

    @property
    def reads_word_counts(self) -> bool:
        """Whether the technique reads word counts: yes, unless the user gives a vocabulary."""
        return not self.path


def _by_frequency(weights: Iterable[tuple[str, float]]) -> list[str]:
    """Folded words, the most frequent first; the weights of different casings are added up."""
    sums: defaultdict[str, float] = defaultdict(float)
    for word, weight in weights:
        sums[fold(word)] += weight
    return sorted(sums, key=lambda word: (-sums[word], word))


def _not_empty(words: list[str], path: str | Path) -> list[str]:
    if not words:
        raise CorpusError(f"word list {str(path)!r} is empty; it needs one word a line")
    return words
