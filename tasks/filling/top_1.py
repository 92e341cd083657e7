"""Top-1: the filler's best word, on the list of kept words or not (paper 3.2)."""

from collections.abc import Sequence

import numpy as np

from tasks.filling.choice import Chosen
from tasks.filling.marker_randomness import Place


class BestWord:
    """Takes the word with the highest score; of equal ones the first of the vocabulary."""

    def choose(self, scores: np.ndarray, places: Sequence[Place]) -> Chosen:
        """Choose from ``(B, W)`` scores."""
        return Chosen(scores.argmax(axis=1), np.zeros(len(scores), dtype=bool))
