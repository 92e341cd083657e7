"""Top-1: the filler's best word, on the list of kept words or not (paper 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from tasks.filling.settings import CandidateMethod, refuse_copies

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import Chosen, Forbidden
    from tasks.filling.context import Learned
    from tasks.filling.marker_randomness import MarkerRandomness, Place


class Top1(CandidateMethod):
    """The filler's best word."""

    title: ClassVar[str] = "Top-1"
    colour: ClassVar[int | None] = 2
    sentence: ClassVar[str] = "The filler’s best word, left to right."
    kind: Literal["top_1"]

    @model_validator(mode="after")
    def _draws_nothing(self) -> Self:
        refuse_copies(self.copies, "top_1 takes the best word", "use top_k, sample or log_linear, or leave copies out")
        return self

    def choice(self, off_list: np.ndarray, randomness: MarkerRandomness, learned: Learned | None = None) -> BestWord:
        """The best, whatever list it is on."""
        return BestWord()


class BestWord:
    """Takes the word with the highest score; of equal ones the first of the vocabulary."""

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores."""
        import numpy as np

        from tasks.filling.choice import Chosen, without_forbidden

        return Chosen(without_forbidden(scores, forbidden).argmax(axis=1), np.zeros(len(scores), dtype=bool))
