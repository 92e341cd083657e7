"""Scorers: parts that a beam search adds to the transducer's score, such as a language model's log-probability."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT


class NodeValues:
    """An array of numbers by node that grows with the tree."""

    def __init__(self, kind: type = np.float64) -> None:
        self._values: np.ndarray = np.zeros(1024, dtype=kind)

    def set(self, first: int, values: np.ndarray) -> None:
        """Set the values of the nodes from ``first`` on."""
        if (end := first + len(values)) > len(self._values):
            self._values = np.concatenate([self._values, np.zeros(2 * end - len(self._values), self._values.dtype)])
        self._values[first:end] = values

    def put(self, nodes: np.ndarray, values: np.ndarray | bool) -> None:
        """Set the values of these nodes."""
        self._values[nodes] = values

    def __getitem__(self, nodes: np.ndarray) -> np.ndarray:
        return self._values[nodes]


class Scorer(Protocol):
    """Scores of unit sequences, the nodes of a prefix tree; a score depends on the sequence only.

    A slow scorer may give estimates. The search then settles the nodes that may stay, every few frames and all at
    once. The score of a whole sentence is never an estimate.
    """

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on; their parents are older."""

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each node (N,), float64; the estimate where ``estimated``. Other nodes are settled."""

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Upper bound on the score that each unit adds to each node (N or 1, V - 1), float32."""

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score of each node (N,) after one more unit, and whether it is an estimate. After an estimate it is."""

    def settle(self, nodes: np.ndarray) -> None:
        """Compute the scores of nodes (N,) that have estimates only."""

    def retain(self, nodes: np.ndarray) -> None:
        """From now on only these nodes can be extended."""

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Score of each sequence as a whole sentence (N,)."""


class UnitScorer(Scorer):
    """A scorer that knows the score of every unit after a node at once."""

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        self._tree, self._values = tree, NodeValues()
        self._known, self._rows = np.zeros(0, dtype=np.int64), np.zeros((0, tree.units), dtype=np.float32)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Score that each unit adds after each of distinct nodes (N, V - 1), float32."""
        raise NotImplementedError

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on."""
        self._values.set(first, self._after(self._tree.parent[first:], self._tree.unit[first:]))

    def _after(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        if not np.isin(nodes, self._known).all():
            self.bounds(nodes)
        found: np.ndarray = self._values[nodes] + self._rows[np.searchsorted(self._known, nodes), units]
        return found

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each node (N,)."""
        return self._values[nodes]

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Score that each unit adds to each node (N, V - 1)."""
        # ``extend`` will need children of these nodes next.
        self._known, inverse = np.unique(nodes, return_inverse=True)
        self._rows = self.rows(self._known)
        return self._rows[inverse]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score of each node (N,) after one more unit; never an estimate."""
        return self._after(nodes, units), np.zeros(len(nodes), dtype=bool)

    def settle(self, nodes: np.ndarray) -> None:
        """Nothing: there are no estimates."""

    def retain(self, nodes: np.ndarray) -> None:
        """Nothing is dropped: numbers are small."""

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Score of each sequence (N,)."""
        return self._values[nodes]


class WeightedScorers:
    """The weighted sum of scorers by name, with the methods of a ``Scorer``; 0 without any."""

    def __init__(self, scorers: Mapping[str, tuple[Scorer, float]] | None = None) -> None:
        self._named = scorers or {}
        self._scorers: Sequence[tuple[Scorer, float]] = list(self._named.values())

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        for scorer, _ in self._scorers:
            scorer.start(tree, states)

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on."""
        for scorer, _ in self._scorers:
            scorer.extend(first)

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Sum for each node (N,)."""
        total = np.zeros(len(nodes))
        for scorer, weight in self._scorers:
            total = total + weight * scorer.values(nodes, estimated)
        return total

    def bounds(self, nodes: np.ndarray) -> np.ndarray | float:
        """Upper bound on the change of the sum by each unit."""
        total: np.ndarray | float = 0.0
        for scorer, weight in self._scorers:
            total = total + np.float32(weight) * scorer.bounds(nodes)
        return total

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum for each node (N,) after one more unit, and whether a part is an estimate."""
        total, some = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=bool)
        for scorer, weight in self._scorers:
            found, is_estimate = scorer.ahead(nodes, units, estimated)
            total = total + weight * found
            some |= is_estimate
        return total, some

    def settle(self, nodes: np.ndarray) -> None:
        """Compute the sums of nodes (N,) that have estimates only."""
        for scorer, _ in self._scorers:
            scorer.settle(nodes)

    def retain(self, nodes: np.ndarray) -> None:
        """From now on only these nodes can be extended."""
        for scorer, _ in self._scorers:
            scorer.retain(nodes)

    def end(self, nodes: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Sum for each sequence as a whole sentence (N,), and the parts by name."""
        parts = {name: scorer.end(nodes) for name, (scorer, _) in self._named.items()}
        total = np.zeros(len(nodes))
        for part, (_, weight) in zip(parts.values(), self._scorers, strict=True):
            total = total + weight * part
        return total, parts


def sentence_scores(scorer: Scorer, sequences: Sequence[tuple[int, ...]], model: "RNNT", blank: int) -> np.ndarray:
    """Score of each sequence of units as a whole sentence (N,), as in the search."""
    tree = SequenceTree(blank)
    scorer.start(tree, PredictorStates(model, blank, tree))
    nodes = np.full(len(sequences), ROOT)
    for place in range(max(map(len, sequences), default=0)):
        longer = np.array([index for index, sequence in enumerate(sequences) if len(sequence) > place])
        units = np.array([sequences[index][place] for index in longer.tolist()])
        nodes[longer], before = tree.children(nodes[longer], units)
        if tree.size > before:
            scorer.extend(before)
        scorer.retain(nodes)
    return scorer.end(nodes)
