"""The vocabulary threshold (paper 3.1, ``vocabThres``): keep the N most frequent words of a generic vocabulary.

The vocabulary is the ``vocabulary_size`` most frequent folded words of generic text; counts of different
casings are added up. Equal counts go by the words' code points, so the choice does not depend on anything else.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import read_lines
from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.words import fold
from tasks.errors import CorpusError, ParameterError
from tasks.masking.lists.kept_words import KeptWords
from tasks.masking.settings import VocabularyThreshold


class ThresholdedVocabulary(KeptWords):
    """Keep the most frequent words."""

    def __init__(self, words: list[str], settings: VocabularyThreshold, where: str) -> None:
        """``words``: folded, the most frequent first. ``ParameterError`` where there are fewer than N."""
        vocabulary = words[: settings.vocabulary_size]
        if settings.kept_words > len(vocabulary):
            raise ParameterError(
                f"kept_words: {settings.kept_words!r} is more than the {len(vocabulary)} words of the vocabulary "
                f"({where}, vocabulary_size {settings.vocabulary_size}); lower it, or count words on more text"
            )
        super().__init__(vocabulary[: settings.kept_words], settings.kind)
        self._vocabulary_words, self._asked = len(vocabulary), settings.vocabulary_size

    def in_force(self) -> dict[str, Any]:
        """The size of the vocabulary, which a small generic corpus makes smaller than asked for."""
        return {"vocabulary_words": self._vocabulary_words, "vocabulary_size_asked": self._asked}


def vocabulary_threshold(
    settings: VocabularyThreshold, word_counts: str | Path | None = None, vocabulary: str | Path | None = None
) -> ThresholdedVocabulary:
    """The technique that the settings describe, from word counts or from a vocabulary in order of frequency."""
    if (word_counts is None) == (vocabulary is None):
        raise ParameterError(
            "vocabulary_threshold needs the words of generic text: give one of --word-counts FILE ('palimpsest "
            "count-words' writes it) and --vocabulary FILE (one word a line, the most frequent first)"
        )
    if word_counts is not None:
        return ThresholdedVocabulary(_by_frequency(word_counts), settings, str(word_counts))
    words = list(dict.fromkeys(fold(line.strip()) for line in read_lines(str(vocabulary)) if line.strip()))
    return ThresholdedVocabulary(_not_empty(words, str(vocabulary)), settings, str(vocabulary))


def _by_frequency(path: str | Path) -> list[str]:
    counts: Counter[str] = Counter()
    for word, count in read_word_counts(path):
        counts[fold(word)] += count
    return _not_empty(sorted(counts, key=lambda word: (-counts[word], word)), path)


def _not_empty(words: list[str], path: str | Path) -> list[str]:
    if not words:
        raise CorpusError(f"word list {str(path)!r} is empty; it needs one word a line")
    return words
