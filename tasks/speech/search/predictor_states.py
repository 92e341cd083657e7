"""Outputs and states of the transducer's predictor: one row for each unit sequence that was ever expanded.

A hypothesis that leaves the beam often returns a frame later; its row is still there.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_FIRST_CAPACITY = 1024


class PredictorStates:
    """Rows of predictor outputs and states by the nodes of a prefix tree."""

    def __init__(self, model: "RNNT", blank: int, tree: SequenceTree) -> None:
        self._model, self._tree = model, tree
        self._device = next(model.parameters()).device
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        # Blank is the start symbol, as in torchaudio's search and in training.
        output, _, state = model.predict(torch.tensor([[blank]], device=self._device), self._ones(1), None)
        self._outputs = self._table(output[:, 0])
        self._states = [[self._table(part) for part in layer] for layer in state]
        self._row[ROOT] = 0
        self.rows = 1
        self._gates = _gates_of_units(model)

    def _ones(self, count: int) -> Tensor:
        return torch.ones(count, dtype=torch.int64, device=self._device)

    def _table(self, first: Tensor) -> Tensor:
        table = first.new_zeros(_FIRST_CAPACITY, first.shape[1])
        table[:1] = first
        return table

    def ensure(self, nodes: np.ndarray) -> None:
        """Run the predictor for all ``nodes`` without a row; their parents must have one."""
        if self._tree.size > len(self._row):
            grown = np.full(max(2 * len(self._row), self._tree.size), -1, dtype=np.int64)
            grown[: len(self._row)] = self._row
            self._row = grown
        missing = np.unique(nodes[self._row[nodes] < 0])
        if not len(missing):
            return
        nodes = padded(missing)
        parents = torch.from_numpy(self._row[self._tree.parent[nodes]]).to(self._device)
        units = torch.from_numpy(self._tree.unit[nodes]).to(self._device)
        state = [[part.index_select(0, parents) for part in layer] for layer in self._states]
        output, state = self._step(units, state)
        begin, end = self.rows, self.rows + len(missing)
        self._outputs = _written(self._outputs, begin, output[: len(missing)])
        self._states = [
            [_written(table, begin, part[: len(missing)]) for table, part in zip(tables, parts, strict=True)]
            for tables, parts in zip(self._states, state, strict=True)
        ]
        self._row[missing] = np.arange(begin, end)
        self.rows = end

    def _step(self, units: Tensor, state: list[list[Tensor]]) -> tuple[Tensor, list[list[Tensor]]]:
        """Outputs (M, D) and states after one more unit (M,)."""
        if self._gates is None:
            output, _, state = self._model.predict(units[:, None], self._ones(len(units)), state)
            return output[:, 0], state
        predictor = self._model.predictor
        states = []
        hidden = None
        for layer, (previous, cell) in zip(predictor.lstm_layers, state, strict=True):
            gates = self._gates.index_select(0, units) if hidden is None else layer.x2g(hidden)
            gates = layer.g_norm(gates + layer.p2g(previous))
            admit, forget, new, show = gates.chunk(4, 1)
            cell = layer.c_norm(forget.sigmoid() * cell + admit.sigmoid() * new.tanh())
            hidden = show.sigmoid() * cell.tanh()
            states.append([hidden, cell])
        return predictor.output_layer_norm(predictor.linear(hidden)), states

    def outputs(self, nodes: np.ndarray) -> Tensor:
        """Predictor outputs (N, D) of nodes with a row."""
        return self._outputs.index_select(0, torch.from_numpy(self._row[nodes]).to(self._device))

    def join(self, encodings: Tensor, outputs: Tensor) -> Tensor:
        """The joiner's scores of all symbols (N, V) for encoded frames (N, D) and predictor outputs (N, D)."""
        ones = self._ones(len(outputs))
        joined, _, _ = self._model.join(encodings[:, None], ones, outputs[:, None], ones)
        return joined[:, 0, 0]


def _gates_of_units(model: "RNNT") -> Tensor | None:
    """Input gates of the first LSTM layer for each unit (V, 4 H); ``None`` for a model without its own predictor.

    They do not depend on earlier units and are half of the layer's work.
    """
    predictor: Any = getattr(model, "predictor", None)
    if predictor is None:
        return None
    return predictor.lstm_layers[0].x2g(predictor.input_layer_norm(predictor.embedding.weight))


def _written(table: Tensor, begin: int, rows: Tensor) -> Tensor:
    """The table with ``rows`` from row ``begin`` on; enlarged if there is no room."""
    end = begin + len(rows)
    if end > len(table):
        larger = table.new_zeros(max(2 * len(table), end), table.shape[1])
        larger[:begin] = table[:begin]
        table = larger
    table[begin:end] = rows
    return table
