"""Shallow fusion: a weighted language model, an insertion bonus, and an internal language model taken off.

score = transducer + lm_weight x language model + insertion_bonus x words - internal_lm_weight x internal model.
Blank gets nothing of it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.language_model.sequence_tree import SequenceTree
from tasks.speech.fusion.prefix_score import NodeValues, PrefixScore, SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT


class WordCounts:
    """Words begun by each node of a prefix tree; a word begins with its first letter."""

    def __init__(self, units: SpelledUnits) -> None:
        self._units = units

    def start(self, tree: SequenceTree) -> None:
        """Begin with a tree that holds the root alone."""
        self._tree = tree
        self._words, self._inside = NodeValues(np.int64), NodeValues(bool)

    def extend(self, first: int) -> None:
        """Nodes from ``first`` on are new."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        inside = self._inside[parents] & ~self._units.begins[units]
        opens = self._units.has_letters[units] & ~inside
        self._words.set(first, self._words[parents] + opens)
        self._inside.set(first, inside | opens)

    def opened(self, nodes: np.ndarray, units: np.ndarray | None = None) -> np.ndarray:
        """Whether each unit begins a word behind each node (N, V), or one of the ``units`` behind each (N,)."""
        inside = self._inside[nodes]
        if units is None:
            begins, inside = self._units.begins, inside[:, None]
            return self._units.has_letters & (begins | ~inside)
        return self._units.has_letters[units] & (self._units.begins[units] | ~inside)

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Words of each node (N,), int64."""
        return self._words[nodes]


INTERNAL_MARGIN = 8.0
"""Nats that an internal model which only scores what is there may give to a unit, at most, for it to be considered."""


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """What each part counts."""

    lm_weight: float
    insertion_bonus: float
    """Nats for each word."""
    internal_lm_weight: float = 0.0


class ShallowFusion:
    """What is added to the transducer's score of a unit sequence; a function of the sequence alone.

    What takes long to find out has an estimate as well. The estimate counts at first; every few frames those that may
    stay are settled, all of them at once. Whole sentences never count by an estimate.
    """

    def __init__(
        self,
        weights: FusionWeights,
        units: SpelledUnits,
        language_model: PrefixScore | None,
        internal: PrefixScore | None = None,
    ) -> None:
        self.weights, self._units = weights, units
        self._words = WordCounts(units)
        self._language_model = language_model if weights.lm_weight else None
        self._internal = internal if weights.internal_lm_weight else None
        used = ((self._language_model, weights.lm_weight), (self._internal, -weights.internal_lm_weight))
        self._scores = [(score, weight) for score, weight in used if score is not None]

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
        self._words.start(tree)
        for score, _ in self._scores:
            score.start(tree, states, model)

    def extend(self, first: int) -> None:
        """Nodes of the tree from ``first`` on are new."""
        self._words.extend(first)
        for score, _ in self._scores:
            score.extend(first)

    def settle(self, nodes: np.ndarray) -> None:
        """Find out what is added to these nodes (N,), where that is not known yet."""
        for score, _ in self._scores:
            score.settle(nodes)

    def added(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """What is added to the scores of nodes (N,), or the estimate of it; float64."""
        total = self.weights.insertion_bonus * self._words.values(nodes)
        for score, weight in self._scores:
            found = score.values(nodes)
            if not score.exact and estimated.any():
                found[estimated] = score.estimates(nodes[estimated])
            total = total + weight * found
        return total

    def most(self, nodes: np.ndarray) -> np.ndarray:
        """No less than what each unit changes ``added`` by, (N, V - 1), float32."""
        most: np.ndarray = np.float32(max(self.weights.insertion_bonus, 0.0)) * self._words.opened(nodes)
        for score, weight in self._scores:
            if weight < 0 and not score.exact:
                most = most + np.float32(-weight * INTERNAL_MARGIN)
            else:
                most = most + np.float32(weight) * score.of_units(nodes)
        return most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``added`` of each node (N,) with one unit more, and whether that is an estimate; so are all behind one."""
        total = self.weights.insertion_bonus * (self._words.values(nodes) + self._words.opened(nodes, units))
        some = np.zeros(len(nodes), dtype=bool)
        for score, weight in self._scores:
            found, is_estimate = score.ahead(nodes, units, estimated)
            total = total + weight * found
            some |= is_estimate
        return total, some

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """Of what ``ahead`` was asked last, these (M,) are nodes now, and ``extend`` was told of them."""
        for score, _ in self._scores:
            score.keep(chosen, nodes)

    def retain(self, nodes: np.ndarray) -> None:
        """Only these nodes can be extended from now on."""
        for score, _ in self._scores:
            score.retain(nodes)

    def finish(self, nodes: np.ndarray) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """What is added to whole sentences (N,), and the parts of each for ``Hypothesis``."""
        words = self._words.values(nodes)
        zeros = np.zeros(len(nodes))
        language_model = zeros if self._language_model is None else self._language_model.finish(nodes)
        internal = zeros if self._internal is None else self._internal.finish(nodes)
        weights = self.weights
        total = weights.lm_weight * language_model + weights.insertion_bonus * words
        total = total - weights.internal_lm_weight * internal
        parts: list[dict[str, Any]] = [
            {"language_model": of_model, "internal": of_internal, "words": count}
            for of_model, of_internal, count in zip(
                language_model.tolist(), internal.tolist(), words.tolist(), strict=True
            )
        ]
        return total, parts
