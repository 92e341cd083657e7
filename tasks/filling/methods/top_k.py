"""Top-K: a random one of the K best words, redrawn while it is on the list of never-masked words (paper 3.2)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.errors import ParameterError
from tasks.filling.settings import CandidateMethod

if TYPE_CHECKING:
    import numpy as np


class TopK(CandidateMethod):
    """A random one of the K best words, redrawn while it is on the list of never-masked words."""

    title: ClassVar[str] = "Top-K"
    sentence: ClassVar[str] = "A random one of the filler’s K best words, drawn again while it is a never-masked word."
    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: number of candidates per marker."""

    @property
    def fewest_candidates(self) -> int:
        """K."""
        return self.k

    def equal_copies(self) -> tuple[str, str] | None:
        """There is no draw among one word."""
        return ("top_k with k=1 takes the best word", "raise k") if self.k == 1 else None

    def check_words(self, off_list: "np.ndarray") -> None:
        """Raise ``ParameterError`` if the filler has fewer than K words."""
        if self.k > len(off_list):
            raise ParameterError(
                f"k={self.k} is more than the {len(off_list)} words that this filler can write; use a smaller k"
            )

    def choose(self, scores: "np.ndarray", off_list: "np.ndarray", random: "np.random.Generator") -> tuple[int, bool]:
        """Draw without replacement from the K best words until one is not on the list.

        The paper does not define the case that all K are on the list. Here the first drawn word is taken, a uniform
        draw from the K best, and the slot counts as a fallback.
        """
        import numpy as np

        k = min(self.k, len(scores))
        # All scores from the k-th highest: a partition alone would break ties arbitrarily.
        best = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        best = best[np.argsort(-scores[best], kind="stable")[:k]]
        drawn = best[random.permutation(k)]
        # If fewer than K candidates are left, the K best include forbidden ones.
        drawn = drawn[~np.isneginf(scores[drawn])]
        allowed = drawn[off_list[drawn]]
        return (int(allowed[0]), False) if allowed.size else (int(drawn[0]), True)
