"""Scorers that know every unit's score at once: numbers of words, and the internal language model."""

import numpy as np
import torch

from tasks.speech.recogniser.units import WORD_BEGIN, Units
from tasks.speech.search.scorer import UnitScorer


class SpelledUnits:
    """Letters of each unit, and whether it begins a word; no unit spans two words."""

    def __init__(self, units: Units) -> None:
        self.letters = [str(units.decode([index])) for index in range(len(units.pieces))]
        self.has_letters = np.array([bool(letters) for letters in self.letters])
        marked = np.array([piece.startswith(WORD_BEGIN) for piece in units.pieces])
        self.begins = marked & (self.has_letters | np.array([piece == WORD_BEGIN for piece in units.pieces]))


class WordCounts(UnitScorer):
    """Number of words; a word begins with its first letter."""

    columns = np.dtype([("value", "f8"), ("inside", "?")])

    def __init__(self, units: SpelledUnits) -> None:
        self._units = units

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """1 for each unit that begins a word after each node, else 0 (N, V - 1)."""
        begins = self._units.begins | ~self.nodes["inside"][nodes][:, None]
        return (self._units.has_letters & begins).astype(np.float32)

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on."""
        super().extend(first)
        units = self.tree.unit[first:]
        inside = self.nodes["inside"][first : first + len(units)]  # so far that of the parents
        inside &= ~self._units.begins[units]
        inside |= self._units.has_letters[units]


class ZeroEncoder(UnitScorer):
    """Minus the score of the transducer's internal language model: predictor and joiner without a signal, over units
    only (Variani et al. 2020, section 4.2)."""

    @torch.inference_mode()
    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Minus the log-probability of each unit after each node (N, V - 1)."""
        self.states.extend()
        outputs = self.states.outputs(nodes)
        logits = self.states.join(torch.zeros_like(outputs), outputs)[:, : self.tree.units]
        return -torch.log_softmax(logits, dim=1).cpu().numpy()
