"""What every filling method has in common: it chooses one word per slot from the scores of the candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.errors import ModelError
from tasks.filling.marker_randomness import Place

Forbidden = Sequence[np.ndarray]
"""For each of ``B`` slots the candidates that must not be chosen: indices, or ``(W,)`` booleans."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice for ``B`` slots."""

    candidates: np.ndarray
    """``(B,)`` indices into the candidate words."""
    fallbacks: np.ndarray
    """``(B,)`` booleans: no candidate followed the off-list rule, so a word that is on the list was taken."""


class Choice(Protocol):
    """A filling method that uses a filler; one implementation per file: ``top_1``, ``top_k``, ``sample``."""

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` float32 scores (unnormalised log-probabilities of the candidate words).

        ``forbidden`` candidates are taken out before anything else, so that the K best, say, are the K best of the
        others. They are never chosen, not as a fallback either; ``ModelError`` where a slot has no other.
        """
        ...


def without_forbidden(scores: np.ndarray, forbidden: Forbidden | None) -> np.ndarray:
    """The scores with minus infinity for what is forbidden; the array itself is left as it is.

    Raises ``ModelError`` where a slot has no candidate left.
    """
    if forbidden is None or not any(row.any() if row.dtype == bool else row.size for row in forbidden):
        return scores
    scores = scores.copy()
    for row, candidates in enumerate(forbidden):
        scores[row, candidates] = -np.inf
    if np.isneginf(scores.max(axis=1)).any():
        raise ModelError("every word that this filler can write is forbidden at one of the markers: nothing to choose")
    return scores
