"""Top-1: the filler's best word, on the list of never-masked words or not (paper 3.2)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.filling.settings import CandidateMethod

if TYPE_CHECKING:
    import numpy as np


class Top1(CandidateMethod):
    """The filler's best word."""

    title: ClassVar[str] = "Top-1"
    sentence: ClassVar[str] = "The filler’s best word, left to right."
    kind: Literal["top_1"]

    def equal_copies(self) -> tuple[str, str]:
        """There is no draw."""
        return "top_1 takes the best word", "use top_k, sample or log_linear"

    def choose(self, scores: "np.ndarray", off_list: "np.ndarray", random: "np.random.Generator") -> tuple[int, bool]:
        """The word with the highest score, the first in the vocabulary among equal ones."""
        return int(scores.argmax()), False
