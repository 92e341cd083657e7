"""What stands for the language that a transducer has learned from its own training text; fusion takes it off."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from tasks.errors import SpeechError
from tasks.language_model.sequence_tree import SequenceTree
from tasks.speech.fusion.prefix_score import KnownScore
from tasks.speech.search.predictor_states import PredictorStates

_DISCOUNT = 0.5


class UnitBigram(KnownScore):
    """A bigram of units (LODR, Zheng et al. 2022); see ``PrefixScore``. It has no sentence end."""

    def __init__(self, log_probabilities: np.ndarray) -> None:
        """``log_probabilities`` (V + 1, V): of each unit behind each unit, and behind the beginning in the last row."""
        self._table = log_probabilities.astype(np.float32)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        # The root's unit is -1: the last row.
        return self._table[self._tree.unit[nodes]]


def unit_bigram(sequences: Iterable[list[int]], units: int) -> UnitBigram:
    """A bigram with absolute discounting, estimated on the units of the transducer's training text.

    Raises ``SpeechError`` where there is no unit.
    """
    counts = np.zeros((units + 1, units))
    for sequence in sequences:
        np.add.at(counts, ([units, *sequence][: len(sequence)], sequence), 1)
    if not counts.any():
        raise SpeechError("the recogniser's training text holds no word, so it has no bigram")
    single = (counts.sum(0) + 1) / (counts.sum() + units)
    totals = counts.sum(1, keepdims=True)
    freed = _DISCOUNT * (counts > 0).sum(1, keepdims=True)
    share = np.where(totals > 0, freed / np.maximum(totals, 1), 1.0)
    return UnitBigram(np.log(np.maximum(counts - _DISCOUNT, 0) / np.maximum(totals, 1) + share * single))


class ZeroEncoder(KnownScore):
    """The transducer's predictor and joiner without a signal, over units alone (Variani et al. 2020, section 4.2)."""

    def start(self, tree: SequenceTree, states: PredictorStates, model: Any) -> None:
        """Begin with a tree that holds the root alone."""
        super().start(tree, states, model)
        self._states, self._model = states, model

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        self._states.ensure(np.unique(self._tree.parent[first:]))
        super().extend(first)

    @torch.inference_mode()
    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        outputs = self._states.outputs(nodes)[:, None]
        ones = torch.ones(len(nodes), dtype=torch.int64, device=outputs.device)
        joined, _, _ = self._model.join(torch.zeros_like(outputs), ones, outputs, ones)
        return torch.log_softmax(joined[:, 0, 0, : self._tree.units], dim=1).cpu().numpy()
