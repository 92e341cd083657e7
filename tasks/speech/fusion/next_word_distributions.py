"""Next-word distributions after the histories that a search has open, over the sorted vocabulary.

The probability of a range of words is the sum of the words at its ends and of the whole blocks between them. The blocks
are the difference of two cumulative sums. These are float64, and words are stored as they are. So a range within a
block is exact, and a longer one is wrong by 1e-16 at most. A table of all cumulative sums would be three times as large
and no more exact.

The words of a vocabulary are in alphabetical order, so words with the same prefix are contiguous. Each node of the
prefix tree of all words is therefore a range, and no tree is built.
"""

import math
from bisect import bisect_left, bisect_right

import numpy as np
import torch

from tasks.language_model.language_models import NextWords
from tasks.language_model.vocabulary import END_ID, PADDING_ID, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary

_LAST = chr(0x10FFFF)
EMPTY = 0
"""The empty prefix."""
_FIRST_SPELLINGS = 1024
OUTSIDE = 1
"""All prefixes of no word of the vocabulary."""


class SortedVocabulary:
    """Words in alphabetical order, then the special tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        special = len(SPECIAL_TOKENS)
        order = sorted(range(special, len(vocabulary)), key=vocabulary.tokens.__getitem__)
        self.words = [vocabulary.tokens[index] for index in order]
        self.columns = np.array([*order, *range(special)], dtype=np.int64)
        """Vocabulary ids (V,) in this order."""
        self.unknown_column = len(order) + UNKNOWN_ID
        self.end_column = len(order) + END_ID

    def range_of(self, prefix: str) -> tuple[int, int]:
        """The range of words with this prefix: first, and one past the last."""
        return bisect_left(self.words, prefix), bisect_right(self.words, prefix + _LAST)


class WordBeginnings:
    """Numbered word prefixes, and their extension by units; only letters count, not their division into units.

    Apostrophes at either end of a word are ignored, as in normalisation. All prefixes of no word of the vocabulary are
    one: ``OUTSIDE``.
    """

    def __init__(self, vocabulary: SortedVocabulary, spellings: list[str]) -> None:
        """``spellings``: the letters of each unit."""
        self._vocabulary, self._spellings = vocabulary, spellings
        self._letters = ["", ""]
        self._numbers = {"": EMPTY}
        # By prefix that was ever extended: its row of extensions by unit, -1 where not yet known.
        self._row = np.full(_FIRST_SPELLINGS, -1, dtype=np.int64)
        self._next = np.full((_FIRST_SPELLINGS // 8, len(spellings)), -1, dtype=np.int32)
        size = len(vocabulary.words)
        self._count = 2
        self.table = np.zeros((_FIRST_SPELLINGS, 4), dtype=np.int64)
        self.table[:2] = [(0, size, -1, 0), (0, 0, -1, 1)]
        """By prefix: its range in the sorted vocabulary, the word's own place or -1, and whether it has a letter."""

    def extended(self, beginnings: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The prefixes (N,) extended by the letters of one unit."""
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
"""Words in a block."""
_FIRST_CAPACITY = 64
_TABLES = ("_probabilities", "_sums", "_normaliser", "_unknown")
_ROWS_AT_ONCE = 128
_SMALLEST = 1e-38
"""Smallest stored probability: they are stored in float32."""


class NextWordDistributions:
    """Distributions by history, stored as long as they are retained."""

    def __init__(self, model: NextWords, vocabulary: SortedVocabulary) -> None:
        self._model, self._vocabulary = model, vocabulary
        self._words = len(vocabulary.words)
        # One block more than full ones, so that the end of the last word's range is in a block.
        self._blocks = self._words // BLOCK + 1
        # Columns that fill the last block are between the words and the special tokens; their probability is 0.
        filling = np.full(self._blocks * BLOCK - self._words, PADDING_ID)
        columns = vocabulary.columns
        self._columns = np.concatenate([columns[: self._words], filling, columns[self._words :]])
        # By row: each token's unnormalised probability, cumulative sums, log of the sum over all tokens.
        self._probabilities = np.zeros((_FIRST_CAPACITY, len(self._columns)), dtype=np.float32)
        self._sums = np.zeros((_FIRST_CAPACITY, self._blocks + 1))
        self._normaliser = np.zeros(_FIRST_CAPACITY)
        self._unknown = np.zeros(_FIRST_CAPACITY)
        self.start()

    def start(self) -> None:
        """Forget all."""
        self._row, self._used = np.full(_FIRST_CAPACITY, -1, dtype=np.int64), 0
        self._model.start(self._columns)
        self.computed = 0
        """Number of distributions requested from the model since the start."""

    def ensure(self, histories: np.ndarray) -> None:
        """Request the missing distributions from the model."""
        if len(histories) and (most := int(histories.max()) + 1) > len(self._row):
            self._row = np.concatenate([self._row, np.full(2 * most - len(self._row), -1, dtype=np.int64)])
        missing = np.unique(histories[self._row[histories] < 0])
        self._model.read(missing)
        for begin in range(0, len(missing), _ROWS_AT_ONCE):
            self._compute(missing[begin : begin + _ROWS_AT_ONCE])

    @torch.inference_mode()
    def _compute(self, histories: np.ndarray) -> None:
        begin, end = self._used, self._used + len(histories)
        if end > len(self._sums):
            for name in _TABLES:
                table = getattr(self, name)
                larger = np.empty((2 * end, *table.shape[1:]), dtype=table.dtype)
                larger[:begin] = table[:begin]
                setattr(self, name, larger)
        scores = self._model.scores(histories)  # (N, C)
        filled = self._blocks * BLOCK
        scores[:, self._words : filled] = -math.inf
        found = torch.from_numpy(self._probabilities[begin:end])
        torch.softmax(scores, dim=1, out=found)
        blocks = found[:, :filled].unflatten(1, (self._blocks, BLOCK))
        sums = torch.cumsum(blocks.sum(dim=2), dim=1, dtype=torch.float64).numpy()
        self._sums[begin:end, 0] = 0.0
        self._sums[begin:end, 1:] = sums
        special = found[:, filled:].double().numpy()
        normaliser = np.log(sums[:, -1] + special.sum(axis=1))
        self._normaliser[begin:end] = normaliser
        self._unknown[begin:end] = np.log(np.maximum(special[:, UNKNOWN_ID], _SMALLEST)) - normaliser
        self._row[histories] = np.arange(begin, end)
        self._used = end
        self.computed += len(histories)

    def _shares(self) -> np.ndarray:
        """View of the words' probabilities by row, block and place in the block."""
        filled = self._blocks * BLOCK
        return self._probabilities[:, :filled].reshape(-1, self._blocks, BLOCK)

    def retain(self, histories: np.ndarray) -> None:
        """Drop all distributions but these, which are needed again or soon."""
        held = np.unique(histories[histories < len(self._row)])
        held = held[self._row[held] >= 0]
        rows, self._used = self._row[held], len(held)
        for name in _TABLES:
            table = getattr(self, name)
            table[: len(held)] = table[rows]
        self._row[:] = -1
        self._row[held] = np.arange(len(held))

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
        """Log-probabilities (N,) of the sentence end; not stored."""
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
