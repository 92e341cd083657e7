"""What stands for the language that a transducer has learned from its own training text; fusion takes it off."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from tasks.errors import SpeechError
from tasks.language_model.sequence_tree import SequenceTree
from tasks.speech.fusion.prefix_score import NodeValues
from tasks.speech.search.predictor_states import PredictorStates

_DISCOUNT = 0.5


class UnitBigram:
    """A bigram of units (LODR, Zheng et al. 2022); see ``PrefixScore``. It has no sentence end."""

    exact = True

    def __init__(self, log_probabilities: np.ndarray) -> None:
        """``log_probabilities`` (V + 1, V): of each unit behind each unit, and behind the beginning in the last row."""
        self._table = log_probabilities.astype(np.float32)

    def start(self, tree: SequenceTree, states: PredictorStates, model: Any) -> None:
        """Begin with a tree that holds the root alone."""
        self._tree, self._values = tree, NodeValues()

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        self._values.set(first, self._values[parents] + self._table[self._tree.unit[parents], units])

    def settle(self, nodes: np.ndarray) -> None:
        """All values are known at once."""
        return

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,)."""
        return self._values[nodes]

    estimates = values

    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        # The root's unit is -1: the last row.
        return self._table[self._tree.unit[nodes]]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each node (N,) with one unit more; none is an estimate."""
        return self._values[nodes] + self._table[self._tree.unit[nodes], units], np.zeros(len(nodes), dtype=bool)

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """All values are known at once."""
        return

    def retain(self, nodes: np.ndarray) -> None:
        """Let go of what only other nodes need."""
        return

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        return self._values[nodes]


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


class ZeroEncoder:
    """The transducer's predictor and joiner without a signal, over units alone (Variani et al. 2020, section 4.2)."""

    exact = True

    def start(self, tree: SequenceTree, states: PredictorStates, model: Any) -> None:
        """Begin with a tree that holds the root alone."""
        self._tree, self._states, self._model, self._values = tree, states, model, NodeValues()
        self._known, self._rows = np.zeros(0, dtype=np.int64), np.zeros((0, tree.units), dtype=np.float32)

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        needed = np.unique(parents)
        self._states.ensure(needed)
        if not np.isin(needed, self._known).all():
            self.of_units(needed)
        rows = np.searchsorted(self._known, parents)
        self._values.set(first, self._values[parents] + self._rows[rows, units])

    def settle(self, nodes: np.ndarray) -> None:
        """All values are known at once."""
        return

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,)."""
        return self._values[nodes]

    estimates = values

    @torch.inference_mode()
    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        wanted, inverse = np.unique(nodes, return_inverse=True)
        outputs = self._states.outputs(wanted)[:, None]
        ones = torch.ones(len(wanted), dtype=torch.int64, device=outputs.device)
        joined, _, _ = self._model.join(torch.zeros_like(outputs), ones, outputs, ones)
        # ``extend`` is asked for children of these next.
        self._known = wanted
        self._rows = torch.log_softmax(joined[:, 0, 0, : self._tree.units], dim=1).cpu().numpy()
        return self._rows[inverse]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each node (N,) with one unit more; none is an estimate."""
        if not np.isin(nodes, self._known).all():
            self.of_units(nodes)
        found = self._values[nodes] + self._rows[np.searchsorted(self._known, nodes), units]
        return found, np.zeros(len(nodes), dtype=bool)

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """All values are known at once."""
        return

    def retain(self, nodes: np.ndarray) -> None:
        """Let go of what only other nodes need."""
        return

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        return self._values[nodes]
