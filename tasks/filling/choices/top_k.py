"""Top-K: a random one of the K best words, drawn again while it is on the list of kept words (paper 3.2)."""

from collections.abc import Sequence

import numpy as np

from tasks.errors import ParameterError
from tasks.filling.choices.choice import Chosen, Forbidden, without_forbidden
from tasks.filling.marker_randomness import MarkerRandomness, Place


class OneOfTheBest:
    """Draws without replacement from the K best words until one is off the list.

    Where all K are on the list the paper does not say what to do: the word that was drawn first stays (so the fill is
    a uniform draw from the K best), and the slot counts as a fallback.
    """

    def __init__(self, k: int, off_list: np.ndarray, randomness: MarkerRandomness) -> None:
        """``off_list``: ``(W,)`` booleans, which candidate words are not on the list of kept words."""
        if k > len(off_list):
            raise ParameterError(
                f"k={k} is more than the {len(off_list)} words that this filler can write; use a smaller k"
            )
        self._k, self._off_list, self._randomness = k, off_list, randomness

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores."""
        scores = without_forbidden(scores, forbidden)
        best = best_candidates(scores, self._k)  # (B, K)
        chosen = np.empty(len(scores), dtype=np.int64)
        fallbacks = np.zeros(len(scores), dtype=bool)
        for row, place in enumerate(places):
            drawn = best[row, self._randomness.at(place).permutation(self._k)]
            if forbidden is not None:
                # Where fewer than K candidates are left, the K best hold forbidden ones.
                drawn = drawn[~np.isneginf(scores[row, drawn])]
            allowed = drawn[self._off_list[drawn]]
            fallbacks[row] = allowed.size == 0
            chosen[row] = drawn[0] if fallbacks[row] else allowed[0]
        return Chosen(chosen, fallbacks)


def best_candidates(scores: np.ndarray, k: int) -> np.ndarray:
    """``(B, k)`` indices of the k highest of ``(B, W)`` scores, best first, equal ones in vocabulary order."""
    width = scores.shape[1]
    if k < width:
        # Every score from the k-th highest on: a partition alone would break ties by chance.
        threshold = np.partition(scores, width - k, axis=1)[:, width - k]
    else:
        threshold = scores.min(axis=1)
    best = np.empty((len(scores), k), dtype=np.int64)
    for row, limit in enumerate(threshold):
        candidates = np.flatnonzero(scores[row] >= limit)
        best[row] = candidates[np.argsort(-scores[row, candidates], kind="stable")[:k]]
    return best
