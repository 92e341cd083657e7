"""The n-gram kind, one word at a time: whole distributions from its back-off tables."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.ngram.backoff_model import BackoffModel, find
from tasks.language_model.ngram.folder import load
from tasks.language_model.ngram.mixture import NgramMixture
from tasks.language_model.vocabulary import START_ID, Vocabulary
from tasks.speech.search.prefix_tree import PrefixTree


class NgramNextWord:
    """See ``NextWordModel``."""

    def __init__(self, mixture: NgramMixture, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        used = [(model, weight) for model, weight in zip(mixture.models, mixture.weights, strict=True) if weight > 0]
        self._models, self._weights = [model for model, _ in used], [weight for _, weight in used]

    @classmethod
    def load(cls, folder: str | Path) -> "NgramNextWord":
        """The model of a folder."""
        return cls(*load(folder))

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        self._columns = torch.from_numpy(columns)
        self._histories = PrefixTree(len(self.vocabulary))
        # By history, of each model: the entry of each order that the history ends in, -1 for none.
        self._entries = [[self._first(model) for model in self._models]]

    @staticmethod
    def _first(model: BackoffModel) -> np.ndarray:
        entries = np.full(max(model.order - 1, 1), -1, dtype=np.int64)
        entries[0] = START_ID
        return entries

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one word more (N,)."""
        found, before = self._histories.children(histories, words)
        for history in range(before, self._histories.size):
            parent, word = int(self._histories.parent[history]), int(self._histories.unit[history])
            self._entries.append(
                [self._next(*pair, word) for pair in zip(self._models, self._entries[parent], strict=True)]
            )
        return found

    @staticmethod
    def _next(model: BackoffModel, before: np.ndarray, word: int) -> np.ndarray:
        entries = np.full_like(before, -1)
        entries[0] = word
        for place, table in enumerate(model.orders[1:-1]):
            if before[place] >= 0 and len(table.keys):
                wanted = np.array([before[place] * model.vocabulary_size + word])
                entries[place + 1] = find(table.keys, wanted)[0]
        return entries

    def read(self, histories: np.ndarray) -> None:
        """Nothing is shared by several histories."""
        return

    def scores(self, histories: np.ndarray) -> Tensor:
        """Log-probability of every token as the next one (N, C)."""
        found = torch.empty(len(histories), len(self._columns))
        for row, history in enumerate(histories.tolist()):
            mixed = np.zeros(len(self.vocabulary))
            for model, weight, entries in zip(self._models, self._weights, self._entries[history], strict=True):
                mixed += weight * np.exp(_distribution(model, entries))
            with np.errstate(divide="ignore"):
                found[row] = torch.from_numpy(np.log(mixed)).float()[self._columns]
        return found


def _distribution(model: BackoffModel, entries: np.ndarray) -> np.ndarray:
    """Log-probabilities (V,) of every word behind a history that ends in these entries."""
    result = model.orders[0].log_probability.copy()
    for entry, (lower, higher) in zip(entries.tolist(), pairwise(model.orders), strict=False):
        if entry < 0 or not len(higher.keys):
            continue
        result += lower.log_backoff[entry]
        begin, end = np.searchsorted(higher.keys, [entry * model.vocabulary_size, (entry + 1) * model.vocabulary_size])
        result[higher.keys[begin:end] - entry * model.vocabulary_size] = higher.log_probability[begin:end]
    return result
