"""A back-off language model: tables of n-grams with log-probabilities and the weights of what backs off."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class BackoffOrder:
    """The n-grams of one order, sorted by key (see ``counts``)."""

    keys: np.ndarray
    """int64, sorted; of order 1 every word of the vocabulary by id."""
    log_probability: np.ndarray
    """Of the last word behind the others, in nats (float64); minus infinity for what is never predicted."""
    log_backoff: np.ndarray
    """What the order below is worth behind this n-gram, where it is a context, in nats (float64)."""


@dataclass(frozen=True)
class BackoffModel:
    """All orders of a model."""

    orders: list[BackoffOrder]
    vocabulary_size: int

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.orders)

    def log_probabilities(
        self, tokens: np.ndarray, offsets: np.ndarray, targets: np.ndarray | None = None
    ) -> np.ndarray:
        """Log-probability of each id behind those before it in its sentence, in nats (N,); 0 for the first of each.

        ``tokens`` (N,) holds sentences one after the other, ``offsets`` where each begins and where the last ends.
        ``targets`` (N,): other ids whose log-probabilities are asked for in place of each token's.
        """
        tokens = tokens.astype(np.int64)
        asked = tokens if targets is None else targets.astype(np.int64)
        place = np.arange(len(tokens)) - np.repeat(offsets[:-1], np.diff(offsets))
        index = tokens  # entry of the order at hand that ends at each position, -1 for none
        result = self.orders[0].log_probability[asked]
        for length, (lower, higher) in enumerate(pairwise(self.orders), start=2):
            if not len(higher.keys):
                break
            # What stands before each position as a context of the order below, where there is such an entry.
            before = np.concatenate([[-1], index[:-1]])
            ends = np.flatnonzero((place >= length - 1) & (before >= 0))
            contexts = before[ends] * self.vocabulary_size
            found = find(higher.keys, contexts + asked[ends])
            backed_off = result[ends] + lower.log_backoff[before[ends]]
            result[ends] = np.where(found >= 0, higher.log_probability[found], backed_off)
            index = np.full(len(tokens), -1, dtype=np.int64)
            index[ends] = found if targets is None else find(higher.keys, contexts + tokens[ends])
        result[place == 0] = 0.0
        return result


def find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Index of each wanted key in the sorted ``keys`` (one at least), -1 where it is not there."""
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, index, -1)
