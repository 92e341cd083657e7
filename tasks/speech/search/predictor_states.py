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
        self._model, self._tree = model, tree
        self._device = next(model.parameters()).device
        # Blank is the start symbol, as in torchaudio's search and in training.
        output, _, state = model.predict(torch.tensor([[blank]], device=self._device), self._ones(1), None)
        self._depth = len(state[0])
        self._tables = [
            part.new_zeros(_FIRST_CAPACITY, part.shape[1]) for part in (output[:, 0], *(p for s in state for p in s))
        ]
        self.size = 0
        self._write(output[:, 0], state, 1)
        self._gates = _gates_of_units(model)

    def _ones(self, count: int) -> Tensor:
        return torch.ones(count, dtype=torch.int64, device=self._device)

    def _write(self, output: Tensor, state: list[list[Tensor]], count: int) -> None:
        """Add the first ``count`` rows to all tables."""
        begin, end = self.size, self.size + count
        for number, rows in enumerate((output, *(part for layer in state for part in layer))):
            table = self._tables[number]
            if end > len(table):
                self._tables[number] = table = torch.cat([table, table.new_zeros(end, table.shape[1])])
            table[begin:end] = rows[:count]
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
        parts = [table.index_select(0, parents) for table in self._tables[1:]]
        state = [parts[begin : begin + self._depth] for begin in range(0, len(parts), self._depth)]
        self._write(*self._step(units, state), len(new))

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
        """Predictor outputs (N, D) of nodes."""
        return self._tables[0].index_select(0, torch.from_numpy(nodes).to(self._device))

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
