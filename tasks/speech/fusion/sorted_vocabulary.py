"""A word vocabulary in alphabetical order: word beginnings as ranges of it, and next-word distributions over it.

Words with the same prefix are contiguous. Each node of the prefix tree of all words is therefore a range, and no tree
is built. The probability of a range is the sum of the words at its ends and of the whole blocks between them. The
blocks are the difference of two cumulative sums. These are float64, and words are stored as they are. So a range within
a block is exact, and a longer one is wrong by 1e-16 at most. A table of all cumulative sums would be three times as
large and no more exact.
"""

import math
from bisect import bisect_left, bisect_right

import numpy as np
import torch

from tasks.language_model.language_models import NextWords
from tasks.language_model.vocabulary import END_ID, PADDING_ID, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary
from tasks.speech.search.scorer import grown

_LAST = chr(0x10FFFF)
EMPTY, _OUTSIDE = 0, 1
"""The empty prefix, and all prefixes of no word of the vocabulary."""
_FIRST_CAPACITY = 1024
_PREFIX = np.dtype([("first", "i8"), ("last", "i8"), ("own", "i8"), ("letter", "?"), ("row", "i8")])


def sorted_words(vocabulary: Vocabulary) -> tuple[list[str], np.ndarray]:
    """The words in alphabetical order, and their vocabulary ids (W,)."""
    order = sorted(range(len(SPECIAL_TOKENS), len(vocabulary)), key=vocabulary.tokens.__getitem__)
    return [vocabulary.tokens[index] for index in order], np.array(order, dtype=np.int64)


class WordBeginnings:
    """Numbered word prefixes, and their extension by units; only letters count, not their division into units.

    Apostrophes at either end of a word are ignored, as in normalisation. All prefixes of no word of the vocabulary are
    one.
    """

    def __init__(self, words: list[str], spellings: list[str]) -> None:
        """``words`` in alphabetical order; ``spellings``: the letters of each unit."""
        self._words, self._spellings = words, spellings
        self._letters, self._numbers = ["", ""], {"": EMPTY}
        # The row of each prefix that was ever extended; extensions by unit in each row, -1 where not yet known.
        self._table, self._rows = np.full(_FIRST_CAPACITY, -1, dtype=_PREFIX), 0
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
        self._table = grown(self._table, number + 1, -1)
        self._letters.append(letters)
        own = first if word and self._words[first] == word else -1
        self._table[number] = (first, last, own, bool(word), -1)
        return self._numbers.setdefault(letters, number)


_BLOCK = 32
"""Words in a block."""
_ROWS_AT_ONCE = 128
_SMALLEST = 1e-38
"""Smallest stored probability: they are stored in float32."""


class NextWordDistributions:
    """Distributions by history, stored as long as they are retained."""

    def __init__(self, model: NextWords, ids: np.ndarray) -> None:
        """``ids``: the model's numbers of the sorted words."""
        self._model, self._words = model, len(ids)
        # One block more than full ones, so that the end of the last word's range is in a block.
        self._blocks = self._words // _BLOCK + 1
        self._filled = self._blocks * _BLOCK
        # Columns that fill the last block are between the words and the special tokens; their probability is 0.
        filling = np.full(self._filled - self._words, PADDING_ID)
        self._columns = np.concatenate([ids, filling, np.arange(len(SPECIAL_TOKENS))])
        columns = [
            ("probability", np.float32, len(self._columns)),  # not normalised
            ("sum", np.float64, self._blocks + 1),  # of all blocks before
            ("normaliser", np.float64),  # logarithm of the sum over all tokens
            ("unknown", np.float64),  # log-probability
        ]
        self._rows = np.zeros(64, dtype=np.dtype(columns, align=True))
        self.start()

    def start(self) -> None:
        """Forget all."""
        self._row, self._used = np.full(64, -1, dtype=np.int64), 0
        self._model.start(self._columns)

    def ensure(self, histories: np.ndarray) -> None:
        """Request the missing distributions from the model."""
        self._row = grown(self._row, int(histories.max(initial=0)) + 1, -1)
        missing = np.unique(histories[self._row[histories] < 0])
        self._model.read(missing)
        for begin in range(0, len(missing), _ROWS_AT_ONCE):
            self._compute(missing[begin : begin + _ROWS_AT_ONCE])

    def _scores(self, histories: np.ndarray) -> torch.Tensor:
        scores = self._model.scores(histories)  # (N, C)
        scores[:, self._words : self._filled] = -math.inf
        return scores

    @torch.inference_mode()
    def _compute(self, histories: np.ndarray) -> None:
        begin, end = self._used, self._used + len(histories)
        self._rows = grown(self._rows, end)
        rows = self._rows[begin:end]
        found = torch.softmax(self._scores(histories), dim=1)
        blocks = found[:, : self._filled].unflatten(1, (self._blocks, _BLOCK))
        sums = torch.cumsum(blocks.sum(dim=2), dim=1, dtype=torch.float64).numpy()
        special = found[:, self._filled :].double().numpy()
        rows["probability"] = found.numpy()
        rows["sum"][:, 0] = 0.0
        rows["sum"][:, 1:] = sums
        rows["normaliser"] = np.log(sums[:, -1] + special.sum(axis=1))
        rows["unknown"] = np.log(np.maximum(special[:, UNKNOWN_ID], _SMALLEST)) - rows["normaliser"]
        self._row[histories] = np.arange(begin, end)
        self._used = end

    def retain(self, histories: np.ndarray) -> None:
        """Drop all distributions but these, which are needed again or soon."""
        held = np.unique(histories[histories < len(self._row)])
        held = held[self._row[held] >= 0]
        self._used = len(held)
        self._rows[: len(held)] = self._rows[self._row[held]]
        self._row[:] = -1
        self._row[held] = np.arange(len(held))

    def word(self, histories: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the words at these places of the sorted vocabulary."""
        rows = self._row[histories]
        shares = self._rows["probability"][rows, places].astype(np.float64)
        return np.log(np.maximum(shares, _SMALLEST)) - self._rows["normaliser"][rows]

    def unknown(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of all unknown words together."""
        return self._rows["unknown"][self._row[histories]]

    def between(self, histories: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Probabilities (N,) of the words from ``first`` up to but not including ``last``."""
        rows, places = self._row[histories], np.arange(_BLOCK)
        shares = self._rows["probability"]
        first_block, last_block = first // _BLOCK, last // _BLOCK
        after = places >= (first % _BLOCK)[:, None]  # (N, _BLOCK)
        before = places < (last % _BLOCK)[:, None]
        within = (first_block == last_block)[:, None]
        of_first = shares[rows[:, None], first_block[:, None] * _BLOCK + places]
        total = np.where(after & (before | ~within), of_first, 0).sum(axis=1, dtype=np.float64)
        longer = np.flatnonzero(~within)
        rows, block = rows[longer], last_block[longer]
        of_last = np.where(before[longer], shares[rows[:, None], block[:, None] * _BLOCK + places], 0)
        whole = self._rows["sum"][rows, block] - self._rows["sum"][rows, first_block[longer] + 1]
        total[longer] += whole + of_last.sum(axis=1, dtype=np.float64)
        return total * np.exp(-self._rows["normaliser"][self._row[histories]])

    def sentence_end(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the sentence end; not stored."""
        wanted, inverse = np.unique(histories, return_inverse=True)
        self._model.read(wanted)
        ends = [self._ends(wanted[begin : begin + _ROWS_AT_ONCE]) for begin in range(0, len(wanted), _ROWS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *ends])[inverse]

    @torch.inference_mode()
    def _ends(self, histories: np.ndarray) -> np.ndarray:
        scores = self._scores(histories)
        return (scores[:, self._filled + END_ID] - scores.logsumexp(dim=1)).double().numpy()
