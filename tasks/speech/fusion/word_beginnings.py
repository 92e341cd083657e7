"""Beginnings of words as ranges of a sorted vocabulary, and their extension by units.

The words of a vocabulary are in alphabetical order, so words with the same prefix are contiguous. Each node of the
prefix tree of all words is therefore a range, and no tree is built.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.speech.search.scorer import grown

_LAST = chr(0x10FFFF)
EMPTY, _OUTSIDE = 0, 1
"""The empty prefix, and all prefixes of no word of the vocabulary."""
_FIRST_CAPACITY = 1024
_PREFIX = np.dtype([("first", "i8"), ("last", "i8"), ("own", "i8"), ("letter", "?"), ("row", "i8")])


class SortedVocabulary:
    """Words in alphabetical order, then the special tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        special = len(SPECIAL_TOKENS)
        order = sorted(range(special, len(vocabulary)), key=vocabulary.tokens.__getitem__)
        self.words = [vocabulary.tokens[index] for index in order]
        self.columns = np.array([*order, *range(special)], dtype=np.int64)
        """Vocabulary ids (V,) in this order."""


class WordBeginnings:
    """Numbered word prefixes, and their extension by units; only letters count, not their division into units.

    Apostrophes at either end of a word are ignored, as in normalisation. All prefixes of no word of the vocabulary are
    one.
    """

    def __init__(self, vocabulary: SortedVocabulary, spellings: list[str]) -> None:
        """``spellings``: the letters of each unit."""
        self._words, self._spellings = vocabulary.words, spellings
        self._letters, self._numbers = ["", ""], {"": EMPTY}
        # The row of each prefix that was ever extended; extensions by unit in each row, -1 where not yet known.
        self._table = np.zeros(_FIRST_CAPACITY, dtype=_PREFIX)
        self._table["row"], self._rows = -1, 0
        self._next = np.full((_FIRST_CAPACITY // 8, len(spellings)), -1, dtype=np.int32)
        self._table[EMPTY], self._table[_OUTSIDE] = (0, len(self._words), -1, False, -1), (0, 0, -1, True, -1)

    @property
    def capacity(self) -> int:
        """A number above those of all prefixes."""
        return len(self._table)

    def range_of(self, beginnings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words with these prefixes (N,) in the sorted vocabulary: the first, and one past the last."""
        return self._table["first"][beginnings], self._table["last"][beginnings]

    def own_word(self, beginnings: np.ndarray) -> np.ndarray:
        """The place of the word that each prefix is (N,); -1 if it is none."""
        return self._table["own"][beginnings]

    def has_letter(self, beginnings: np.ndarray) -> np.ndarray:
        """Whether each prefix has a letter (N,)."""
        return self._table["letter"][beginnings]

    def extended(self, beginnings: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The prefixes (N,) extended by the letters of one unit."""
        new = np.unique(beginnings[self._table["row"][beginnings] < 0])
        self._next = grown(self._next, self._rows + len(new), -1)
        self._table["row"][new] = np.arange(self._rows, self._rows + len(new))
        self._rows += len(new)
        rows = self._table["row"][beginnings]
        missing = np.flatnonzero(self._next[rows, units] < 0)
        for beginning, unit in {*zip(beginnings[missing].tolist(), units[missing].tolist(), strict=True)}:
            self._next[self._table["row"][beginning], unit] = self._extended(beginning, self._spellings[unit])
        return self._next[rows, units].astype(np.int64)

    def _extended(self, beginning: int, spelling: str) -> int:
        if beginning == _OUTSIDE or not spelling:
            return beginning
        letters = self._letters[beginning] + spelling
        if letters in self._numbers:
            return self._numbers[letters]
        word = letters.strip("'")
        first, last = bisect_left(self._words, word), bisect_right(self._words, word + _LAST)
        if first == last:
            return self._numbers.setdefault(letters, _OUTSIDE)
        number = len(self._letters)
        if number == len(self._table):
            larger = np.zeros_like(self._table)
            larger["row"] = -1
            self._table = np.concatenate([self._table, larger])
        self._letters.append(letters)
        own = first if word and self._words[first] == word else -1
        self._table[number] = (first, last, own, bool(word), -1)
        return self._numbers.setdefault(letters, number)
