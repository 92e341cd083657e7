"""Outputs and states of the transducer's predictor for each node of a prefix tree.

A hypothesis that leaves the beam often returns a frame later; its output and state are still there.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.sequence_tree import SequenceTree, padded

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_FIRST_CAPACITY = 1024


class PredictorStates:
    """Tables of outputs and states with a row for each node."""

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
