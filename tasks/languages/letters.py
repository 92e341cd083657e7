"""How probable a word is by its letters: what is known of a word that is on no list.

The probability of a letter behind the four before it is smoothed by that behind three, two, one and none (MacKay and
Peto 1995, a Dirichlet prior of the shorter context), so that fractional counts, as expectations are, can be used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ORDER = 5
_END, _OTHER = 1, 2
_CODES = 128
"""Letters that are told apart, with the end of a word and all the others; 128 to the power of 5 is a 64-bit number."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SpelledWords:
    """Words as keys: for each of their letters and for the end of each, and for each length of context."""

    word: Integers
    """The number of the word that a place belongs to, (P,)."""
    contexts: Integers
    """Key of the letters before a place, by their number from 0, (ORDER, P)."""
    grams: Integers
    """Key of the same with the letter of the place, (ORDER, P)."""
    words: int


class Alphabet:
    """The letters that are told apart."""

    def __init__(self, words: Sequence[str]) -> None:
        """The most frequent letters of the words."""
        letters, counts = np.unique(list("".join(words)), return_counts=True)
        frequent = letters[np.argsort(-counts, kind="stable")][: _CODES - _OTHER - 1]
        self._code = {str(letter): code for code, letter in enumerate(frequent, start=_OTHER + 1)}

    def spell(self, words: Sequence[str]) -> SpelledWords:
        """The places of the words."""
        lengths = np.array([len(word) + 1 for word in words], dtype=np.int64)
        code = self._code
        letters = np.array([c for word in words for c in (*(code.get(x, _OTHER) for x in word), _END)], dtype=np.int64)
        number = np.repeat(np.arange(len(words)), lengths)
        behind = np.arange(len(letters)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        contexts, grams = np.empty((2, ORDER, len(letters)), dtype=np.int64)
        context = np.zeros(len(letters), dtype=np.int64)
        for length in range(ORDER):
            if length:
                before = letters[np.maximum(np.arange(len(letters)) - length, 0)]
                context = context * _CODES + np.where(behind >= length, before, 0)
            contexts[length], grams[length] = context, context * _CODES + letters
        return SpelledWords(number, contexts, grams, len(words))


class LetterModel:
    """Counts of letters behind letters."""

    def __init__(self, spelled: SpelledWords, weights: Floats) -> None:
        """Of words with weights, (W,)."""
        of_place = weights[spelled.word]
        heavy = of_place > 0
        counted = [
            _sums(keys[length][heavy], of_place[heavy])
            for length in range(ORDER)
            for keys in (spelled.contexts, spelled.grams)
        ]
        self._contexts, self._grams = counted[::2], counted[1::2]

    def log_probability(self, spelled: SpelledWords) -> Floats:
        """Of each word with its end, in nats, (W,): those of all words together have the sum 1."""
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
