"""The word-level Transformer, one word at a time: keys and values of every history are kept and shared.

Numbers are those of ``tasks.language_model.transformer.scoring``: a sentence is read from its beginning, and one that
is longer than the model's positions in windows that overlap by half.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.language_model.transformer.folder import load_model
from tasks.language_model.transformer.model import Block, TransformerLanguageModel
from tasks.language_model.transformer.processor_products import has_products, laid_out, product
from tasks.language_model.transformer.windows import overlap_of
from tasks.language_model.vocabulary import START_ID, Vocabulary
from tasks.packed_linear import pack_linear_layers
from tasks.speech.search.prefix_tree import ROOT, PrefixTree

_FIRST_CAPACITY = 512
_USUAL_ROWS = 32
"""Histories that are asked for at once, about: what the layout of the weights is chosen for."""


class TransformerNextWord:
    """See ``NextWordModel``."""

    def __init__(self, model: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
        """The model is this object's from now on: its layers are laid out for products of a few rows."""
        pack_linear_layers(model)
        self.model, self.vocabulary = model.eval(), vocabulary
        self._device = model.embedding.weight.device
        self._columns: np.ndarray | None = None
        self._projection: Any = None

    @classmethod
    def load(cls, folder: str | Path) -> "TransformerNextWord":
        """The model of a folder, on a GPU where there is one."""
        model, vocabulary = load_model(folder)
        return cls(model.cuda() if torch.cuda.is_available() else model, vocabulary)

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        if self._columns is None or not np.array_equal(columns, self._columns):
            self._columns = columns
            weight = self.model.embedding.weight.detach()[torch.from_numpy(columns).to(self._device)]
            self._packed = has_products(weight)
            self._projection = laid_out(weight, _USUAL_ROWS) if self._packed else weight
        self._histories = PrefixTree(len(self.vocabulary))
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        width, layers = self.model.architecture.width, self.model.architecture.layers
        self._keys_values = torch.empty(_FIRST_CAPACITY, layers, 2, width, device=self._device)
        self._hidden = torch.empty(_FIRST_CAPACITY, width, device=self._device)
        self._rows = 0

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one word more (N,)."""
        found, _ = self._histories.children(histories, words)
        if self._histories.size > len(self._row):
            grown = np.full(2 * self._histories.size, -1, dtype=np.int64)
            grown[: len(self._row)] = self._row
            self._row = grown
        return found

    @torch.inference_mode()
    def log_probabilities(self, histories: np.ndarray) -> Tensor:
        """Of every token as the next one (N, V)."""
        self._ensure(np.unique(histories))
        hidden = self._hidden.index_select(0, torch.from_numpy(self._row[histories]).to(self._device))
        logits = product(hidden, self._projection) if self._packed else functional.linear(hidden, self._projection)
        return torch.log_softmax(logits, dim=1).cpu()

    def _ensure(self, histories: np.ndarray) -> None:
        """Compute the rows of those of these histories (each once) that have none, and of what stands before them."""
        missing = histories[self._row[histories] < 0]
        if not len(missing):
            return
        before = self._histories.parent[missing]
        self._ensure(np.unique(before[before >= 0]))
        within = self._histories.length[missing] < self.model.architecture.maximum_tokens
        if within.any():
            self._add(missing[within], *self._step(missing[within]))
        for history in missing[~within].tolist():
            self._add(np.array([history]), self._window(history), None)

    def _add(self, histories: np.ndarray, hidden: Tensor, keys_values: Tensor | None) -> None:
        begin, end = self._rows, self._rows + len(histories)
        if end > len(self._hidden):
            for name in ("_hidden", "_keys_values"):
                table = getattr(self, name)
                larger = table.new_empty(max(2 * len(table), end), *table.shape[1:])
                larger[:begin] = table[:begin]
                setattr(self, name, larger)
        self._hidden[begin:end] = hidden
        if keys_values is not None:
            self._keys_values[begin:end] = keys_values
        self._row[histories] = np.arange(begin, end)
        self._rows = end

    def _step(self, histories: np.ndarray) -> tuple[Tensor, Tensor]:
        """Hidden states (N, D), and keys and values (N, layers, 2, D), of the last words of histories."""
        depth = self._histories.length[histories]
        chain = np.full((len(histories), int(depth.max())), -1, dtype=np.int64)  # rows of what stands before
        current = histories
        for place in range(chain.shape[1]):
            current = np.where(current > ROOT, self._histories.parent[current], -1)
            chain[:, place] = np.where(current >= 0, self._row[current], -1)
        unit = np.where(histories == ROOT, START_ID, self._histories.unit[histories])
        tokens, places = torch.from_numpy(unit).to(self._device), torch.from_numpy(depth).to(self._device)
        before = torch.from_numpy(chain).to(self._device)
        hidden = self.model.embedding(tokens) + self.model.positions(places)  # (N, D)
        found = []
        for number, layer in enumerate(self.model.blocks):
            hidden, keys_values = self._block(layer, hidden, number, before)  # type: ignore[arg-type]
            found.append(keys_values)
        return self.model.final_norm(hidden), torch.stack(found, dim=1)

    def _block(self, block: Block, hidden: Tensor, number: int, before: Tensor) -> tuple[Tensor, Tensor]:
        """``Block.forward`` for one more position: (N, D), and its keys and values (N, 2, D)."""
        rows, width = hidden.shape
        joined = block.attention_input(block.attention_norm(hidden)).view(rows, 3, width)
        earlier = self._keys_values[:, number].index_select(0, before.clamp(min=0).flatten())
        earlier = earlier.view(rows, before.shape[1], 2, width)
        shape = (rows, before.shape[1] + 1, block.heads, width // block.heads)
        keys = torch.cat([earlier[:, :, 0], joined[:, None, 1]], dim=1).view(shape)  # (N, C, H, D/H)
        values = torch.cat([earlier[:, :, 1], joined[:, None, 2]], dim=1).view(shape)
        query = joined[:, 0].view(rows, block.heads, -1) * shape[-1] ** -0.5
        scores = torch.einsum("nhd,nchd->nhc", query, keys)
        hidden_places = functional.pad(before < 0, (0, 1))[:, None]
        weights = torch.softmax(scores.masked_fill(hidden_places, -math.inf), dim=2)
        mixed = torch.einsum("nhc,nchd->nhd", weights, values).reshape(rows, width)
        hidden = hidden + block.attention_output(mixed)
        inner = functional.gelu(block.feed_forward_input(block.feed_forward_norm(hidden)), approximate="tanh")
        return hidden + block.feed_forward_output(inner), joined[:, 1:]

    def _window(self, history: int) -> Tensor:
        """Hidden state (1, D) of a history that is longer than the model's positions: the window that scores it."""
        maximum = self.model.architecture.maximum_tokens
        stride = maximum - overlap_of(maximum)
        words = (START_ID, *self._histories.sequence(history))
        begin = stride * -(-(len(words) - maximum) // stride)
        tokens = torch.tensor([words[begin:]], device=self._device)
        return self.model(tokens)[:, -1]
