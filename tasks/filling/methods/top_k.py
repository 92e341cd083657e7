"""Top-K: a random one of the K best words, redrawn while it is on the list of never-masked words (paper 3.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import CandidateMethod, Choose, refuse_copies

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.prepared_fill import Learned


class TopK(CandidateMethod):
    """A random one of the K best words, redrawn while it is on the list of never-masked words."""

    title: ClassVar[str] = "Top-K"
    sentence: ClassVar[str] = "A random one of the filler’s K best words, drawn again while it is a never-masked word."
    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: number of candidates per marker."""

    @model_validator(mode="after")
    def _copies_differ(self) -> Self:
        if self.k == 1:
            refuse_copies(self.copies, "top_k with k=1 takes the best word", "raise k, or leave copies out")
        return self

    def prepare(self, off_list: np.ndarray, learned: Learned) -> Choose:
        """The choice of one of the K best words."""
        return partial(one_of_the_best, _at_most(self.k, len(off_list)), off_list)

    def candidates_at_least(self, words: int) -> int:
        """K. Raises ``ParameterError`` if there are fewer words."""
        return _at_most(self.k, words)

    def among(self, words: int) -> Self:
        """A copy with K limited to the number of words."""
        return self.model_copy(update={"k": min(self.k, words)})


def _at_most(k: int, words: int) -> int:
    if k > words:
        raise ParameterError(f"k={k} is more than the {words} words that this filler can write; use a smaller k")
    return k


def one_of_the_best(k: int, off_list: np.ndarray, scores: np.ndarray, random: np.random.Generator) -> tuple[int, bool]:
    """Draw without replacement from the K best words until one is not on the list (``off_list``: ``(W,)`` booleans).

    The paper does not define the case that all K are on the list. Here the first drawn word is taken, a uniform draw
    from the K best, and the slot counts as a fallback.
    """
    import numpy as np

    drawn = best_candidates(scores, k)[random.permutation(k)]
    # If fewer than K candidates are left, the K best include forbidden ones.
    drawn = drawn[~np.isneginf(scores[drawn])]
    allowed = drawn[off_list[drawn]]
    return (int(allowed[0]), False) if allowed.size else (int(drawn[0]), True)


def best_candidates(scores: np.ndarray, k: int) -> np.ndarray:
    """``(k,)`` indices of the k highest of ``(W,)`` scores, the best first, equal ones in vocabulary order."""
    import numpy as np

    # All scores from the k-th highest: a partition alone would break ties arbitrarily.
    candidates = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    best: np.ndarray = candidates[np.argsort(-scores[candidates], kind="stable")[:k]]
    return best
