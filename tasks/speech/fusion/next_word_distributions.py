"""Next-word distributions behind the histories that a search has open, over the sorted vocabulary.

The probability of a range of words is the sum of its parts: words at its ends, and between them whole blocks, as the
difference of two cumulative sums of blocks. The blocks' sums are float64 and words stand as they are, so a range within
a block loses nothing, and a longer one is wrong by 1e-16 at most. A table of every cumulative sum would be three times
as large and no more exact.
"""

import numpy as np
import torch
from torch.nn import functional

from tasks.speech.fusion.sorted_vocabulary import SortedVocabulary
from tasks.speech.search.next_word.next_word_model import NextWordModel

BLOCK = 32
"""Words of a block."""
_FIRST_CAPACITY = 64
_ROWS_AT_ONCE = 128
_SMALLEST = 1e-38
"""Probabilities are float32; what is smaller counts as this."""


class NextWordDistributions:
    """Distributions by history, as long as they are retained."""

    def __init__(self, model: NextWordModel, vocabulary: SortedVocabulary) -> None:
        self._model, self._vocabulary = model, vocabulary
        self._words = len(vocabulary.words)
        # One block more than full ones: where the last word's range ends, there is always a block.
        self._blocks = self._words // BLOCK + 1
        self._probabilities = np.zeros((_FIRST_CAPACITY, self._blocks, BLOCK), dtype=np.float32)
        self._sums = np.zeros((_FIRST_CAPACITY, self._blocks + 1))
        self._unknown = np.zeros(_FIRST_CAPACITY)
        self.start()

    def start(self) -> None:
        """Forget all."""
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._free = list(range(len(self._sums)))
        self._model.start(self._vocabulary.columns)
        self.computed = 0
        """Distributions asked of the model since the start."""

    def ensure(self, histories: np.ndarray) -> None:
        """Ask the model for the distributions that are not here."""
        if len(histories) and (most := int(histories.max()) + 1) > len(self._row):
            self._row = np.concatenate([self._row, np.full(2 * most - len(self._row), -1, dtype=np.int64)])
        missing = np.unique(histories[self._row[histories] < 0])
        for begin in range(0, len(missing), _ROWS_AT_ONCE):
            self._compute(missing[begin : begin + _ROWS_AT_ONCE])

    def _compute(self, histories: np.ndarray) -> None:
        while len(self._free) < len(histories):
            size = len(self._sums)
            self._free += range(size, 2 * size)
            for name in ("_probabilities", "_sums", "_unknown"):
                table = getattr(self, name)
                larger = np.empty((2 * size, *table.shape[1:]), dtype=table.dtype)
                larger[:size] = table
                setattr(self, name, larger)
        found = self._model.log_probabilities(histories)  # (N, V)
        words = found[:, : self._words].exp().clamp_(min=_SMALLEST)
        blocks = functional.pad(words, (0, self._blocks * BLOCK - self._words)).view(-1, self._blocks, BLOCK)
        sums = torch.cumsum(blocks.sum(dim=2).double(), dim=1)
        rows = [self._free.pop() for _ in range(len(histories))]
        self._probabilities[rows] = blocks.numpy()
        self._sums[rows, 0] = 0.0
        self._sums[rows, 1:] = sums.numpy()
        self._unknown[rows] = found[:, self._vocabulary.unknown_column].double().numpy()
        self._row[histories] = rows
        self.computed += len(rows)

    def retain(self, histories: np.ndarray) -> None:
        """Only these distributions are needed again, or soon."""
        kept = np.zeros(len(self._row), dtype=bool)
        kept[histories[histories < len(kept)]] = True
        gone = np.flatnonzero(~kept & (self._row >= 0))
        self._free += self._row[gone].tolist()
        self._row[gone] = -1

    def word(self, histories: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the words at these places of the sorted vocabulary."""
        return np.log(self._probabilities[self._row[histories], places // BLOCK, places % BLOCK].astype(np.float64))

    def unknown(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of all unknown words together."""
        return self._unknown[self._row[histories]]

    def between(self, histories: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Probabilities (N,) of the words from ``first`` up to but not including ``last``."""
        rows, places = self._row[histories], np.arange(BLOCK)
        first_block, last_block = first // BLOCK, last // BLOCK
        after = places >= (first % BLOCK)[:, None]  # (N, BLOCK)
        before = places < (last % BLOCK)[:, None]
        within = (first_block == last_block)[:, None]
        of_first = np.where(after & (before | ~within), self._probabilities[rows, first_block], 0)
        of_last = np.where(before & ~within, self._probabilities[rows, last_block], 0)
        whole = self._sums[rows, last_block] - self._sums[rows, np.minimum(first_block + 1, last_block)]
        return of_first.sum(axis=1, dtype=np.float64) + whole + of_last.sum(axis=1, dtype=np.float64)

    def sentence_end(self, histories: np.ndarray) -> np.ndarray:
        """Log-probabilities (N,) of the sentence end; nothing is kept."""
        wanted, inverse = np.unique(histories, return_inverse=True)
        parts = [
            self._model.log_probabilities(wanted[begin : begin + _ROWS_AT_ONCE])[:, self._vocabulary.end_column]
            for begin in range(0, len(wanted), _ROWS_AT_ONCE)
        ]
        return torch.cat(parts).double().numpy()[inverse]
