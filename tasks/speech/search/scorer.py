"""Scorers: parts that a beam search adds to the transducer's score, such as a language model's log-probability; and the
outputs and states of the transducer's predictor, which they may read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_FIRST_CAPACITY = 1024


class PredictorStates:
    """Outputs and states of the transducer's predictor for each node of a prefix tree.

    A hypothesis that leaves the beam often returns a frame later; its output and state are still there.
    """

    def __init__(self, model: "RNNT", blank: int, tree: SequenceTree) -> None:
        self._model, self._tree, self.size = model, tree, 0
        self._predictor: Any = model.predictor
        self._device = next(model.parameters()).device
        # The first LSTM layer's input gates for each unit (V, 4 H) do not depend on earlier units, and are half of the
        # layer's work.
        weights = self._predictor.embedding.weight
        self._gates = self._predictor.lstm_layers[0].x2g(self._predictor.input_layer_norm(weights))
        # Blank is the start symbol, as in torchaudio's search and in training.
        output, _, state = model.predict(torch.tensor([[blank]], device=self._device), self._ones(1), None)
        rows = output[:, 0], *(part for layer in state for part in layer)
        self._tables = [part.new_zeros(_FIRST_CAPACITY, part.shape[1]) for part in rows]
        self._write(rows, 1)

    def _ones(self, count: int) -> Tensor:
        return torch.ones(count, dtype=torch.int64, device=self._device)

    def _write(self, rows: tuple[Tensor, ...], count: int) -> None:
        """Add the first ``count`` rows to each table."""
        end = self.size + count
        for number, part in enumerate(rows):
            table = self._tables[number]
            if end > len(table):
                self._tables[number] = table = torch.cat([table, table.new_zeros(end, table.shape[1])])
            table[self.size : end] = part[:count]
        self.size = end

    def extend(self) -> None:
        """Run the predictor for the new nodes of the tree, whose parents are older."""
        new = np.arange(self.size, self._tree.size)
        if not len(new):
            return
        nodes = padded(new)
        parents, units = (
            torch.from_numpy(each[nodes]).to(self._device) for each in (self._tree.parent, self._tree.unit)
        )
        before = [table.index_select(0, parents) for table in self._tables[1:]]
        states: list[Tensor] = []
        for layer, previous, cell in zip(self._predictor.lstm_layers, before[::2], before[1::2], strict=True):
            gates = layer.x2g(states[-2]) if states else self._gates.index_select(0, units)
            admit, forget, value, show = layer.g_norm(gates + layer.p2g(previous)).chunk(4, 1)
            cell = layer.c_norm(forget.sigmoid() * cell + admit.sigmoid() * value.tanh())
            states += [show.sigmoid() * cell.tanh(), cell]
        output = self._predictor.output_layer_norm(self._predictor.linear(states[-2]))
        self._write((output, *states), len(new))

    def outputs(self, nodes: np.ndarray) -> Tensor:
        """Predictor outputs (N, D) of nodes."""
        return self._tables[0].index_select(0, torch.from_numpy(nodes).to(self._device))

    def join(self, encodings: Tensor, outputs: Tensor) -> Tensor:
        """The joiner's scores of all symbols (N, V) for encoded frames (N, D) and predictor outputs (N, D)."""
        ones = self._ones(len(outputs))
        joined, _, _ = self._model.join(encodings[:, None], ones, outputs[:, None], ones)
        return joined[:, 0, 0]


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
        self.tree, self.states, self.nodes = tree, states, np.zeros(_FIRST_CAPACITY, dtype=self.columns)

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
