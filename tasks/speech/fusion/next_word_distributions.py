"""Next-word distributions behind the histories that a search has open, over the sorted vocabulary.

The probability of a range of words is the sum of its parts: words at its ends, and between them whole blocks, as the
difference of two cumulative sums of blocks. The blocks' sums are float64 and words stand as they are, so a range within
a block loses nothing, and a longer one is wrong by 1e-16 at most. A table of every cumulative sum would be three times
as large and no more exact.

The words of a vocabulary stand in the order of their letters, those that begin alike side by side. So each node of the
prefix tree of all words is a range, and no tree is built.
"""

import math
from bisect import bisect_left, bisect_right

import numpy as np
import torch

from tasks.language_model.language_models import NextWords
from tasks.language_model.vocabulary import END_ID, PADDING_ID, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary

_LAST = chr(0x10FFFF)
EMPTY = 0
"""The beginning of a word before its first letter."""
_FIRST_SPELLINGS = 1024
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
        self._row = np.full(_FIRST_SPELLINGS, -1, dtype=np.int64)
        self._next = np.full((_FIRST_SPELLINGS // 8, len(spellings)), -1, dtype=np.int32)
        size = len(vocabulary.words)
        self._count = 2
        self.table = np.zeros((_FIRST_SPELLINGS, 4), dtype=np.int64)
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


BLOCK = 32
"""Words of a block."""
_FIRST_CAPACITY = 64
_ROWS_AT_ONCE = 128
_SMALLEST = 1e-38
"""Probabilities are kept in float32; what is smaller counts as this."""


class NextWordDistributions:
    """Distributions by history, as long as they are retained."""

    def __init__(self, model: NextWords, vocabulary: SortedVocabulary) -> None:
        self._model, self._vocabulary = model, vocabulary
        self._words = len(vocabulary.words)
        # One block more than full ones: where the last word's range ends, there is always a block.
        self._blocks = self._words // BLOCK + 1
        # Columns that fill the last block stand between the words and the special tokens; they count as nothing.
        filling = np.full(self._blocks * BLOCK - self._words, PADDING_ID)
        columns = vocabulary.columns
        self._columns = np.concatenate([columns[: self._words], filling, columns[self._words :]])
        # By row: each token's probability up to rounding, cumulative sums, log of the sum of all tokens.
        self._probabilities = np.zeros((_FIRST_CAPACITY, len(self._columns)), dtype=np.float32)
        self._sums = np.zeros((_FIRST_CAPACITY, self._blocks + 1))
        self._normaliser = np.zeros(_FIRST_CAPACITY)
        self._unknown = np.zeros(_FIRST_CAPACITY)
        self.start()

    def start(self) -> None:
        """Forget all."""
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._free = np.arange(len(self._sums))
        self._model.start(self._columns)
        self.computed = 0
        """Distributions asked of the model since the start."""

    def ensure(self, histories: np.ndarray) -> None:
        """Ask the model for the distributions that are not here."""
        if len(histories) and (most := int(histories.max()) + 1) > len(self._row):
            self._row = np.concatenate([self._row, np.full(2 * most - len(self._row), -1, dtype=np.int64)])
        missing = np.unique(histories[self._row[histories] < 0])
        self._model.read(missing)
        for begin in range(0, len(missing), _ROWS_AT_ONCE):
            self._compute(missing[begin : begin + _ROWS_AT_ONCE])

    @torch.inference_mode()
    def _compute(self, histories: np.ndarray) -> None:
        while len(self._free) < len(histories):
            size = len(self._sums)
            self._free = np.append(self._free, np.arange(size, 2 * size))
            for name in ("_probabilities", "_sums", "_normaliser", "_unknown"):
                table = getattr(self, name)
                larger = np.empty((2 * size, *table.shape[1:]), dtype=table.dtype)
                larger[:size] = table
                setattr(self, name, larger)
        scores = self._model.scores(histories)  # (N, C)
        filled = self._blocks * BLOCK
        scores[:, self._words : filled] = -math.inf
        rows = self._taken(len(histories))
        contiguous = rows[-1] - rows[0] == len(rows) - 1
        if contiguous:
            found = torch.from_numpy(self._probabilities[rows[0] : rows[-1] + 1])
            torch.softmax(scores, dim=1, out=found)
        else:
            found = torch.softmax(scores, dim=1)
            self._probabilities[rows] = found.numpy()
        blocks = found[:, :filled].unflatten(1, (self._blocks, BLOCK))
        sums = torch.cumsum(blocks.sum(dim=2), dim=1, dtype=torch.float64).numpy()
        self._sums[rows, 0] = 0.0
        self._sums[rows, 1:] = sums
        special = found[:, filled:].double().numpy()
        normaliser = np.log(sums[:, -1] + special.sum(axis=1))
        self._normaliser[rows] = normaliser
        self._unknown[rows] = np.log(np.maximum(special[:, UNKNOWN_ID], _SMALLEST)) - normaliser
        self._row[histories] = rows
        self.computed += len(rows)

    def _shares(self) -> np.ndarray:
        """A view of the words' probabilities by row, block and place in the block."""
        filled = self._blocks * BLOCK
        return self._probabilities[:, :filled].reshape(-1, self._blocks, BLOCK)

    def _taken(self, count: int) -> np.ndarray:
        """That many free rows, side by side where the lowest free ones are."""
        rows, self._free = self._free[:count], self._free[count:]
        return rows

    def retain(self, histories: np.ndarray) -> None:
        """Only these distributions are needed again, or soon."""
        kept = np.zeros(len(self._row), dtype=bool)
        kept[histories[histories < len(kept)]] = True
        gone = np.flatnonzero(~kept & (self._row >= 0))
        self._free = np.sort(np.append(self._free, self._row[gone]))
        self._row[gone] = -1

    def word(self, histories: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the words at these places of the sorted vocabulary."""
        rows = self._row[histories]
        shares = self._probabilities[rows, places].astype(np.float64)
        return np.log(np.maximum(shares, _SMALLEST)) - self._normaliser[rows]

    def unknown(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of all unknown words together."""
        return self._unknown[self._row[histories]]

    def between(self, histories: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Probabilities (N,) of the words from ``first`` up to but not including ``last``."""
        rows, places, shares = self._row[histories], np.arange(BLOCK), self._shares()
        first_block, last_block = first // BLOCK, last // BLOCK
        after = places >= (first % BLOCK)[:, None]  # (N, BLOCK)
        before = places < (last % BLOCK)[:, None]
        within = (first_block == last_block)[:, None]
        of_first = np.where(after & (before | ~within), shares[rows, first_block], 0)
        total = of_first.sum(axis=1, dtype=np.float64)
        if (longer := np.flatnonzero(~within)).size:
            row, block = rows[longer], last_block[longer]
            of_last = np.where(before[longer], shares[row, block], 0)
            whole = self._sums[row, block] - self._sums[row, first_block[longer] + 1]
            total[longer] += whole + of_last.sum(axis=1, dtype=np.float64)
        return total * np.exp(-self._normaliser[rows])

    def sentence_end(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the sentence end; nothing is kept."""
        wanted, inverse = np.unique(histories, return_inverse=True)
        self._model.read(wanted)
        ends = [
            self._sentence_end(wanted[begin : begin + _ROWS_AT_ONCE]) for begin in range(0, len(wanted), _ROWS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0), *ends])[inverse]

    @torch.inference_mode()
    def _sentence_end(self, histories: np.ndarray) -> np.ndarray:
        scores = self._model.scores(histories)
        filled = self._blocks * BLOCK
        scores[:, self._words : filled] = -math.inf
        return (scores[:, filled + END_ID] - scores.logsumexp(dim=1)).double().numpy()
