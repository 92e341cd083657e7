"""Scorers: parts that a beam search adds to the transducer's score, such as a language model's log-probability."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT


def grown(table: np.ndarray, rows: int, filler: float = 0) -> np.ndarray:
    """The table with at least so many rows; if it must grow, it has twice as many, of the filler."""
    if rows <= len(table):
        return table
    return np.concatenate([table, np.full_like(table, filler, shape=(2 * rows - len(table), *table.shape[1:]))])


class Scorer:
    """Scores of unit sequences, the nodes of a prefix tree; a score depends on the sequence only.

    A scorer starts with a tree, is extended by its new nodes, and ends with the scores of whole sentences. A slow
    scorer may give estimates before the end. The search then settles the nodes that may stay, every few frames and all
    at once.
    """

    columns: ClassVar[np.dtype]
    """Names and types of the numbers that are stored for each node; those of the root are 0."""

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        self.tree, self.states, self.nodes = tree, states, np.zeros(1024, dtype=self.columns)

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on; their parents are older."""
        raise NotImplementedError

    def add(self, first: int, rows: np.ndarray) -> None:
        """Set the numbers of the nodes from ``first`` on."""
        self.nodes = grown(self.nodes, first + len(rows))
        self.nodes[first : first + len(rows)] = rows

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each node (N,), float64; the estimate where ``estimated``. Other nodes are settled."""
        return self.nodes["value"][nodes]

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Upper bound on the score that each unit adds to each node (N or 1, V - 1), float32."""
        raise NotImplementedError

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score of each node (N,) after one more unit, and whether it is an estimate. After an estimate it is."""
        raise NotImplementedError

    def settle(self, nodes: np.ndarray) -> None:
        """Compute the scores of nodes (N,) that have estimates only; without estimates there is nothing to do."""

    def retain(self, nodes: np.ndarray) -> None:
        """From now on only these nodes can be extended; numbers are small, and need not be dropped."""

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Score of each sequence as a whole sentence (N,), never an estimate."""
        return self.values(nodes, np.zeros(len(nodes), dtype=bool))


class UnitScorer(Scorer):
    """A scorer that knows the score of every unit after a node at once."""

    columns = np.dtype([("value", np.float64)])

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        super().start(tree, states)
        # No node has the number -1.
        self._known, self._rows = np.full(1, -1), np.zeros((1, tree.units), dtype=np.float32)

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Score that each unit adds after each of distinct nodes (N, V - 1), float32."""
        raise NotImplementedError

    def extend(self, first: int) -> None:
        """Add the new nodes from ``first`` on."""
        parents = self.tree.parent[first:]
        new = self.nodes[parents]
        new["value"] = self._after(parents, self.tree.unit[first:])
        self.add(first, new)

    def _after(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._known, nodes)
        if not np.array_equal(self._known.take(place, mode="clip"), nodes):
            self.bounds(nodes)
            place = np.searchsorted(self._known, nodes)
        found: np.ndarray = self.nodes["value"][nodes] + self._rows[place, units]
        return found

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Score that each unit adds to each node (N, V - 1)."""
        # ``extend`` will need children of these nodes next.
        self._known, inverse = np.unique(nodes, return_inverse=True)
        self._rows = self.rows(self._known)
        return self._rows[inverse]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score of each node (N,) after one more unit; never an estimate."""
        return self._after(nodes, units), np.zeros(len(nodes), dtype=bool)


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
