"""Next-word scores of the word-level Transformer; keys and values of every history are cached and shared.

Scores are the same as in ``tasks.language_model.transformer.scoring``. A sentence is read from its beginning. One that
is longer than the model's positions is read in windows that overlap by half.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.language_model.encoded_text import overlap_of
from tasks.language_model.language_factors import LanguageFactors
from tasks.language_model.sequence_tree import ROOT, SequenceTree, padded
from tasks.language_model.transformer.model import Block, TransformerLanguageModel
from tasks.language_model.transformer.processor_products import has_products, laid_out, product
from tasks.language_model.vocabulary import START_ID, Vocabulary
from tasks.packed_linear import pack_linear_layers

_FIRST_CAPACITY = 512
_USUAL_ROWS = 32
"""Usual number of histories in one call, which the layout of the weights is chosen for."""


class TransformerNextWord:
    """See ``NextWords``."""

    def __init__(self, model: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
        """Take over the model: its layers are laid out for products of a few rows."""
        pack_linear_layers(model)
        self.model, self.vocabulary = model.eval(), vocabulary
        self._device = model.embedding.weight.device
        self._columns: np.ndarray | None = None
        self._projection: Any = None

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        if self._columns is None or not np.array_equal(columns, self._columns):
            self._columns = columns
            weight = self.model.embedding.weight.detach()[torch.from_numpy(columns).to(self._device)]
            self._packed = has_products(weight)
            self._projection = laid_out(weight, _USUAL_ROWS) if self._packed else weight
        self._histories = SequenceTree(len(self.vocabulary))
        # By history, q of the next language (K,).
        self._expected = [] if self.model.languages is None else [self.model.languages.first]
        self._row = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        width, layers = self.model.architecture.width, self.model.architecture.layers
        self._keys_values = torch.empty(_FIRST_CAPACITY, layers, 2, width, device=self._device)
        self._hidden = torch.empty(_FIRST_CAPACITY, width, device=self._device)
        self._rows = 0

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one more word (N,)."""
        found, before = self._histories.children(histories, words)
        if self.model.languages is not None and self._histories.size > before:
            expected = np.stack([self._expected[parent] for parent in self._histories.parent[before:].tolist()])
            self._expected += list(self.model.languages.step(expected, self._histories.unit[before:]))
        if self._histories.size > len(self._row):
            grown = np.full(2 * self._histories.size, -1, dtype=np.int64)
            grown[: len(self._row)] = self._row
            self._row = grown
        return found

    @torch.inference_mode()
    def read(self, histories: np.ndarray) -> None:
        """Compute the hidden states, keys and values of these histories (N,)."""
        missing = histories[self._row[histories] < 0]
        if len(missing):
            self._ensure(np.unique(missing))

    @torch.inference_mode()
    def scores(self, histories: np.ndarray) -> Tensor:
        """The scores of every token as the next one (N, C)."""
        self.read(histories)
        rows = padded(self._row[histories])
        hidden = self._hidden.index_select(0, torch.from_numpy(rows).to(self._device))
        if self.model.languages is not None:
            return self._by_language(hidden[: len(histories)], histories, self.model.languages)
        logits = product(hidden, self._projection) if self._packed else functional.linear(hidden, self._projection)
        return logits[: len(histories)].cpu()

    def _by_language(self, hidden: Tensor, histories: np.ndarray, languages: LanguageFactors) -> Tensor:
        """Log-probabilities (N, C) where the language of the next word is predicted first. The sums over
        languages need the scores of the whole vocabulary."""
        found = functional.linear(hidden, self.model.embedding.weight).log_softmax(dim=1).double().cpu().numpy()
        for row, history in zip(found, histories.tolist(), strict=True):
            row += np.log(languages.factor_of_words(self._expected[history], np.exp(row)))
        return torch.from_numpy(found[:, self._columns]).float()

    def _ensure(self, histories: np.ndarray) -> None:
        """Compute the missing rows of these histories (distinct) and of the histories before them."""
        missing = histories[self._row[histories] < 0]
        if not len(missing):
            return
        before = self._histories.parent[missing]
        self._ensure(np.unique(before[before >= 0]))
        within = self._histories.length[missing] < self.model.architecture.maximum_tokens
        within &= self.model.is_stepwise  # other models read every history from its start
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
        count, histories = len(histories), padded(histories)
        depth = self._histories.length[histories]
        chain = np.full((len(histories), int(depth.max())), -1, dtype=np.int64)  # rows of earlier positions
        current = histories
        for place in range(chain.shape[1]):
            current = np.where(current > ROOT, self._histories.parent[current], -1)
            chain[:, place] = np.where(current >= 0, self._row[current], -1)
        unit = np.where(histories == ROOT, START_ID, self._histories.unit[histories])
        tokens, places = torch.from_numpy(unit).to(self._device), torch.from_numpy(depth).to(self._device)
        before = torch.from_numpy(chain).to(self._device)
        earlier = self._keys_values.index_select(0, before.clamp(min=0).flatten())
        earlier = earlier.view(*before.shape, *self._keys_values.shape[1:])  # (N, C, layers, 2, D)
        outside = (before < 0)[:, :, None]
        hidden = self.model.embedding(tokens) + self.model.positions(places)  # (N, D)
        found = []
        for number, layer in enumerate(self.model.blocks):
            hidden, keys_values = _one_more(layer, hidden, earlier[:, :, number], outside)  # type: ignore[arg-type]
            found.append(keys_values)
        return self.model.final_norm(hidden)[:count], torch.stack(found, dim=1)[:count]

    def _window(self, history: int) -> Tensor:
        """The hidden state (1, D) of a history by reading its last window. It serves histories longer than the
        model's positions, and models that are not stepwise."""
        maximum = self.model.architecture.maximum_tokens
        stride = maximum - overlap_of(maximum)
        words = (START_ID, *self._histories.sequence(history))
        begin = stride * max(0, -(-(len(words) - maximum) // stride))
        tokens = torch.tensor([words[begin:]], device=self._device)
        return self.model(tokens)[:, -1]


def _one_more(block: Block, hidden: Tensor, earlier: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
    """``Block.forward`` for one more position: returns (N, D), and its keys and values (N, 2, D).

    ``earlier`` (N, C, 2, D) are the keys and values of earlier positions; ``outside`` (N, C, 1) marks padding. With one
    query a row, a matrix product is too small to pay off, so values are multiplied and summed.
    """
    rows, width = hidden.shape
    heads = (block.heads, width // block.heads)
    joined = block.attention_input(block.attention_norm(hidden)).view(rows, 3, width)
    query = joined[:, 0].view(rows, *heads) * heads[1] ** -0.5
    keys, values = (earlier[:, :, part].unflatten(2, heads) for part in (0, 1))  # (N, C, H, D/H)
    own_key, own_value = (joined[:, part].view(rows, *heads) for part in (1, 2))
    scores = (keys * query[:, None]).sum(dim=3).masked_fill_(outside, -math.inf)  # (N, C, H)
    scores = torch.cat([scores, (own_key * query).sum(dim=2)[:, None]], dim=1)
    weights = torch.softmax(scores, dim=1)[..., None]
    mixed = (weights[:, :-1] * values).sum(dim=1) + weights[:, -1] * own_value
    hidden = hidden + block.attention_output(mixed.view(rows, width))
    inner = functional.gelu(block.feed_forward_input(block.feed_forward_norm(hidden)), approximate="tanh")
    return hidden + block.feed_forward_output(inner), joined[:, 1:]
