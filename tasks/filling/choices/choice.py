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


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What is kept from one slot because it was masked there, and how its absence is hidden."""

    candidates: np.ndarray
    """Indices of the originals among the candidate words."""
    most: np.ndarray
    """``(W,)``: the largest probability that each candidate has there, before the originals are taken out (see
    ``slot_originals``)."""


class HidingChoice(Protocol):
    """A filling method that draws from a distribution, in which no word need be certain."""

    def choose(
        self,
        scores: np.ndarray,
        places: Sequence[Place],
        forbidden: Forbidden | None = None,
        held_back: Sequence[HeldBack] | None = None,
    ) -> Chosen:
        """As ``Choice.choose``; words that are ``held_back`` are not chosen."""
        ...


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


def held_down(weights: np.ndarray, most: np.ndarray) -> np.ndarray | None:
    """``(W,)`` float64 probabilities proportional to the ``(W,)`` weights, but for those that would be above ``most``,
    ``(W,)``: these are at ``most``, and the others have the rest in their own proportions. ``None`` where the words
    with a weight are too few for that.
    """
    if most[weights > 0].sum() < 1 - 1e-9:
        return None
    weights = weights.astype(np.float64)
    if (weights <= most * weights.sum()).all():
        return np.asarray(weights / weights.sum())
    at_most = np.zeros(len(weights), dtype=bool)
    while True:
        rest = np.where(at_most, 0.0, weights)
        total = rest.sum()
        scale = (1 - most[at_most].sum()) / total if total else 0.0
        probabilities = np.where(at_most, most, rest * scale)
        above = ~at_most & (probabilities > most * (1 + 1e-9))
        if not above.any():
            return probabilities
        at_most |= above
