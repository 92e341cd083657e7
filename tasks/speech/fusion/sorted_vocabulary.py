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
        # By beginning that was ever extended: its row of what each unit makes of it, -1 where that is not known yet.
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._next = np.full((_FIRST_CAPACITY // 8, len(spellings)), -1, dtype=np.int32)
        size = len(vocabulary.words)
        self._count = 2
        self.table = np.zeros((_FIRST_CAPACITY, 4), dtype=np.int64)
        self.table[:2] = [(0, size, -1, 0), (0, 0, -1, 1)]
        """By beginning: its range in the sorted vocabulary, the word's own place or -1, and whether it has a letter."""

    def extended(self, beginnings: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The beginnings (N,) with the letters of one unit more."""
        if (self._row[beginnings] < 0).any():
            self._add_rows(np.unique(beginnings[self._row[beginnings] < 0]))
        rows = self._row[beginnings]
        found = self._next[rows, units]
        if (missing := np.flatnonzero(found < 0)).size:
            for beginning, unit in {*zip(beginnings[missing].tolist(), units[missing].tolist(), strict=True)}:
                self._next[self._row[beginning], unit] = self._extended(beginning, unit)
            found = self._next[rows, units]
        return found.astype(np.int64)

    def _add_rows(self, beginnings: np.ndarray) -> None:
        used = int(self._row.max()) + 1
        if (more := used + len(beginnings) - len(self._next)) > 0:
            larger = np.full((max(more, len(self._next)), self._next.shape[1]), -1, dtype=np.int32)
            self._next = np.concatenate([self._next, larger])
        self._row[beginnings] = np.arange(used, used + len(beginnings))

    def _extended(self, beginning: int, unit: int) -> int:
        spelling = self._spellings[unit]
        if beginning == OUTSIDE or not spelling:
            return beginning
        letters = self._letters[beginning] + spelling
        number = self._numbers.get(letters)
        return self._new(letters) if number is None else number

    def _new(self, letters: str) -> int:
        word = letters.strip("'")
        first, last = self._vocabulary.range_of(word)
        if first == last:
            return self._numbers.setdefault(letters, OUTSIDE)
        own = first if word and self._vocabulary.words[first] == word else -1
        if self._count == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
            self._row = np.concatenate([self._row, np.full_like(self._row, -1)])
        number = self._count
        self._count += 1
        self._letters.append(letters)
        self.table[number] = (first, last, own, bool(word))
        return self._numbers.setdefault(letters, number)
