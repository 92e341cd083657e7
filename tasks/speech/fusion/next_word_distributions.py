"""Next-word distributions after the histories that a search has open, over the sorted vocabulary.

The probability of a range of words is the sum of the words at its ends and of the whole blocks between them. The blocks
are the difference of two cumulative sums. These are float64, and words are stored as they are. So a range within a
block is exact, and a longer one is wrong by 1e-16 at most. A table of all cumulative sums would be three times as large
and no more exact.
"""

import math

import numpy as np
import torch

from tasks.language_model.language_models import NextWords
from tasks.language_model.vocabulary import END_ID, PADDING_ID, UNKNOWN_ID
from tasks.speech.fusion.word_beginnings import SortedVocabulary
from tasks.speech.search.scorer import grown

_BLOCK = 32
"""Words in a block."""
_ROWS_AT_ONCE = 128
_SMALLEST = 1e-38
"""Smallest stored probability: they are stored in float32."""


class NextWordDistributions:
    """Distributions by history, stored as long as they are retained."""

    def __init__(self, model: NextWords, vocabulary: SortedVocabulary) -> None:
        self._model, self._words = model, len(vocabulary.words)
        # One block more than full ones, so that the end of the last word's range is in a block.
        self._blocks = self._words // _BLOCK + 1
        self._filled = self._blocks * _BLOCK
        # Columns that fill the last block are between the words and the special tokens; their probability is 0.
        filling = np.full(self._filled - self._words, PADDING_ID)
        self._columns = np.concatenate([vocabulary.columns[: self._words], filling, vocabulary.columns[self._words :]])
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
