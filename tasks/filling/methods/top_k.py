"""Top-K: a random one of the K best words, drawn again while it is on the list of kept words (paper 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import CandidateMethod, refuse_copies

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import Chosen, Forbidden
    from tasks.filling.context import Learned
    from tasks.filling.marker_randomness import MarkerRandomness, Place


class TopK(CandidateMethod):
    """A random one of the K best words, drawn again while it is on the list of kept words."""

    title: ClassVar[str] = "Top-K"
    colour: ClassVar[int | None] = 3
    sentence: ClassVar[str] = "A random one of the filler’s K best, drawn again while it is on the list of kept words."
    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: candidates per marker."""

    @model_validator(mode="after")
    def _copies_differ(self) -> Self:
        if self.k == 1:
            refuse_copies(self.copies, "top_k with k=1 takes the best word", "raise k, or leave copies out")
        return self

    def choice(
        self, off_list: np.ndarray, randomness: MarkerRandomness, learned: Learned | None = None
    ) -> OneOfTheBest:
        """One of the K best."""
        return OneOfTheBest(self.k, off_list, randomness)

    def candidates_at_least(self, words: int) -> int:
        """K; ``ParameterError`` where there are fewer words."""
        return _at_most(self.k, words)

    def among(self, words: int) -> Self:
        """With K no larger than the number of words."""
        return self.model_copy(update={"k": min(self.k, words)})


def _at_most(k: int, words: int) -> int:
    if k > words:
        raise ParameterError(f"k={k} is more than the {words} words that this filler can write; use a smaller k")
    return k


class OneOfTheBest:
    """Draws without replacement from the K best words until one is off the list.

    Where all K are on the list the paper does not say what to do: the word that was drawn first stays (so the fill is
    a uniform draw from the K best), and the slot counts as a fallback.
    """

    def __init__(self, k: int, off_list: np.ndarray, randomness: MarkerRandomness) -> None:
        """``off_list``: ``(W,)`` booleans, which candidate words are not on the list of kept words."""
        self._k, self._off_list, self._randomness = _at_most(k, len(off_list)), off_list, randomness

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores."""
        import numpy as np

        from tasks.filling.choice import Chosen, without_forbidden

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
    import numpy as np

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
