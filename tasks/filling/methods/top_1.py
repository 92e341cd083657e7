"""Top-1: the filler's best word, on the list of never-masked words or not (paper 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from tasks.filling.settings import CandidateMethod, Choose, refuse_copies

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.prepared_fill import Learned


class Top1(CandidateMethod):
    """The filler's best word."""

    title: ClassVar[str] = "Top-1"
    sentence: ClassVar[str] = "The filler’s best word, left to right."
    kind: Literal["top_1"]

    @model_validator(mode="after")
    def _draws_nothing(self) -> Self:
        refuse_copies(self.copies, "top_1 takes the best word", "use top_k, sample or log_linear, or leave copies out")
        return self

    def prepare(self, off_list: np.ndarray, learned: Learned) -> Choose:
        """The choice of the best word, on the list or not."""
        return best_word


def best_word(scores: np.ndarray, random: np.random.Generator) -> tuple[int, bool]:
    """The word with the highest score, the first in the vocabulary among equal ones."""
    return int(scores.argmax()), False
