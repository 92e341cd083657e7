"""Letter model: the probability of a word from its letters, for words that are on no list.

The probability of a letter after the four before it is smoothed with those after three, two, one and none (MacKay and
Peto 1995, a Dirichlet prior of the shorter context). So counts may be fractional, as expectations are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ORDER = 5
_END, _OTHER = 1, 2
_CODES = 128
"""Number of letter codes, including the end of a word and all other letters; 128 ** 5 fits a 64-bit number."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SpelledWords:
    """Words as keys: one place for each letter and each end of a word, for every length of context."""

    word: Integers
    """Index of the word at each place, (P,)."""
    contexts: Integers
    """Key of the letters before each place, by their number from 0, (ORDER, P)."""
    grams: Integers
    """Key of the same letters and the letter of the place, (ORDER, P)."""
    words: int


@dataclass(frozen=True)
class Alphabet:
    """The letters with a code of their own, the most frequent first."""

    letters: str

    @classmethod
    def of(cls, words: Sequence[str]) -> "Alphabet":
        """The most frequent letters of the words."""
        letters, counts = np.unique(list("".join(words)), return_counts=True)
        return cls("".join(letters[np.argsort(-counts, kind="stable")][: _CODES - _OTHER - 1]))

    def spell(self, words: Sequence[str]) -> SpelledWords:
        """The keys of the words."""
        lengths = np.array([len(word) + 1 for word in words], dtype=np.int64)
        code = {letter: number for number, letter in enumerate(self.letters, start=_OTHER + 1)}
        letters = np.array([c for word in words for c in (*(code.get(x, _OTHER) for x in word), _END)], dtype=np.int64)
        number = np.repeat(np.arange(len(words)), lengths)
        offset = np.arange(len(letters)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        contexts, grams = np.empty((2, ORDER, len(letters)), dtype=np.int64)
        context = np.zeros(len(letters), dtype=np.int64)
        for length in range(ORDER):
            if length:
                before = letters[np.maximum(np.arange(len(letters)) - length, 0)]
                context = context * _CODES + np.where(offset >= length, before, 0)
            contexts[length], grams[length] = context, context * _CODES + letters
        return SpelledWords(number, contexts, grams, len(words))


class LetterModel:
    """Counts of letters after their contexts."""

    def __init__(self, spelled: SpelledWords, weights: Floats) -> None:
        """Count the letters of words with weights, (W,)."""
        of_place = weights[spelled.word]
        heavy = of_place > 0
        counted = [
            _sums(keys[length][heavy], of_place[heavy])
            for length in range(ORDER)
            for keys in (spelled.contexts, spelled.grams)
        ]
        self._contexts, self._grams = counted[::2], counted[1::2]

    def log_probability(self, spelled: SpelledWords) -> Floats:
        """The log-probability of each word with its end, in nats, (W,); probabilities of all words sum to 1."""
        probability = np.full(len(spelled.word), 1 / _CODES)
        for length in range(ORDER):
            seen = _found(self._grams[length], spelled.grams[length])
            of = _found(self._contexts[length], spelled.contexts[length])
            prior = 1.0 + length
            probability = (seen + prior * probability) / (of + prior)
        return np.bincount(spelled.word, np.log(probability), spelled.words).astype(np.float64)


def _sums(keys: Integers, weights: Floats) -> tuple[Integers, Floats]:
    different, place = np.unique(keys, return_inverse=True)
    return different, np.bincount(place, weights, len(different)).astype(np.float64)


def _found(counted: tuple[Integers, Floats], keys: Integers) -> Floats:
    different, counts = counted
    if not len(different):
        return np.zeros(len(keys))
    place = np.minimum(np.searchsorted(different, keys), len(different) - 1)
    return np.where(different[place] == keys, counts[place], 0.0)
