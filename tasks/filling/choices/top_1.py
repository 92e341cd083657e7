"""Top-1: the filler's best word, on the list of kept words or not (paper 3.2)."""

from collections.abc import Sequence

import numpy as np

from tasks.filling.choices.choice import Chosen, Forbidden, without_forbidden
from tasks.filling.marker_randomness import Place


class BestWord:
    """Takes the word with the highest score; of equal ones the first of the vocabulary."""

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores."""
        return Chosen(without_forbidden(scores, forbidden).argmax(axis=1), np.zeros(len(scores), dtype=bool))
