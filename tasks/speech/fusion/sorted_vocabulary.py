"""The words of a vocabulary in the order of their letters: the words that begin alike stand side by side.

So each node of the prefix tree of all words is a range, and no tree is built.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary

_LAST = chr(0x10FFFF)
EMPTY = 0
"""The beginning of a word before its first letter."""
_FIRST_CAPACITY = 1024
OUTSIDE = 1
"""The beginning of no word of the vocabulary."""


class SortedVocabulary:
    """Words by the order of their letters, then the special tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        special = len(SPECIAL_TOKENS)
        order = sorted(range(special, len(vocabulary)), key=vocabulary.tokens.__getitem__)
        self.words = [vocabulary.tokens[index] for index in order]
        self.columns = np.array([*order, *range(special)], dtype=np.int64)
        """Ids of the vocabulary (V,) in this order."""
        self.unknown_column = len(order) + UNKNOWN_ID
        self.end_column = len(order) + END_ID

    def range_of(self, prefix: str) -> tuple[int, int]:
        """Where the words stand that begin so: from, and up to but not including."""
        return bisect_left(self.words, prefix), bisect_right(self.words, prefix + _LAST)


class WordBeginnings:
    """Beginnings of words by number, and what a unit makes of one; the letters count, not how units divide them.

    Apostrophes at either end of a word are none of its letters, as normalisation has it. All beginnings of no word of
    the vocabulary are one: ``OUTSIDE``.
    """

    def __init__(self, vocabulary: SortedVocabulary, spellings: list[str]) -> None:
        """``spellings``: the letters of each unit."""
        self._vocabulary, self._spellings = vocabulary, spellings
        self._letters = ["", ""]
        self._numbers = {"": EMPTY}
        self._next: dict[int, int] = {}
        size = len(vocabulary.words)
        self._count = 2
        self.table = np.zeros((_FIRST_CAPACITY, 4), dtype=np.int64)
        self.table[:2] = [(0, size, -1, 0), (0, 0, -1, 1)]
        """By beginning: its range in the sorted vocabulary, the word's own place or -1, and whether it has a letter."""

    def extended(self, beginnings: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The beginnings (N,) with the letters of one unit more."""
        count = len(self._spellings)
        keys = (beginnings * count + units).tolist()
        found = [self._next.get(key, -1) for key in keys]
        if -1 in found:
            for index, number in enumerate(found):
                if number < 0:
                    found[index] = self._add(keys[index], *divmod(keys[index], count))
        return np.array(found, dtype=np.int64)

    def _add(self, key: int, beginning: int, unit: int) -> int:
        number = self._next.get(key)
        if number is not None:
            return number
        spelling = self._spellings[unit]
        if beginning == OUTSIDE or not spelling:
            number = beginning
        else:
            letters = self._letters[beginning] + spelling
            number = self._numbers.get(letters, -1)
            if number < 0:
                number = self._new(letters)
        self._next[key] = number
        return number

    def _new(self, letters: str) -> int:
        word = letters.strip("'")
        first, last = self._vocabulary.range_of(word)
        if first == last:
            return self._numbers.setdefault(letters, OUTSIDE)
        own = first if word and self._vocabulary.words[first] == word else -1
        if self._count == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
        number = self._count
        self._count += 1
        self._letters.append(letters)
        self.table[number] = (first, last, own, bool(word))
        return self._numbers.setdefault(letters, number)
