"""What every filling method has in common: it chooses one word per slot from the scores of the candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.filling.marker_randomness import Place


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice for ``B`` slots."""

    candidates: np.ndarray
    """``(B,)`` indices into the candidate words."""
    fallbacks: np.ndarray
    """``(B,)`` booleans: no candidate followed the off-list rule, so a word that is on the list was taken."""


class Choice(Protocol):
    """A filling method that uses a filler; one implementation per file: ``top_1``, ``top_k``, ``sample``."""

    def choose(self, scores: np.ndarray, places: Sequence[Place]) -> Chosen:
        """Choose from ``(B, W)`` float32 scores (unnormalised log-probabilities of the candidate words)."""
        ...
