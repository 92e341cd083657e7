"""Words in classes by their frequency in generic text: the most frequent 100, the next up to rank 1,000, and so on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.language_model.evaluation.reference_text import SENTENCE_END_RANK


@dataclass(frozen=True, slots=True)
class FrequencyClass:
    """Words between two ranks; the rank of the most frequent word is 1."""

    first: int
    last: int | None
    """``None``: all rarer words, those that the counts do not have among them."""

    @property
    def name(self) -> str:
        """``1-100``, ``over 10000``."""
        return f"over {self.first - 1}" if self.last is None else f"{self.first}-{self.last}"

    def holds(self, ranks: np.ndarray) -> np.ndarray:
        """Which ranks belong to it (N,), bool; a sentence end belongs to none."""
        inside = (ranks >= self.first) & (ranks != SENTENCE_END_RANK)
        return inside if self.last is None else inside & (ranks <= self.last)


def frequency_classes(limits: Sequence[int]) -> list[FrequencyClass]:
    """The classes that end at each of the rising ``limits``, and the one behind them."""
    firsts = [1, *(limit + 1 for limit in limits)]
    return [FrequencyClass(first, last) for first, last in zip(firsts, [*limits, None], strict=True)]


def word_ranks(word_counts: str | Path) -> dict[str, int]:
    """Rank of every normalised word by its count, from 1; equal counts stand in code-point order."""
    from tasks.language_model.vocabulary import counts_of_words

    counts = counts_of_words(word_counts)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: rank for rank, word in enumerate(ordered, start=1)}
