"""The sum of the clipped gradients of many units, computed without the gradient of each unit.

A linear layer has inputs a_t and gradients g_t at its outputs. The gradient of its weight matrix for a unit is ``sum
over t of g_t a_t^T``, with the squared norm ``sum over t, s of (g_t . g_s) (a_t . a_s)`` (ghost clipping: Goodfellow
2015; Lee and Kifer 2021; Li et al. 2022, "Large language models can be strong differentially private learners"). One
forward and one backward pass give the norms. They also give the sum of the gradients, each g_t multiplied by the factor
of its unit (book-keeping: Bu et al. 2023), so no second pass is needed.

An embedding is a linear layer with one-hot inputs. Here it is also the projection onto the vocabulary. So the gradient
of a unit is the sum of two, and its squared norm includes their product.

For long units the T x T tables cost more than a gradient. So their gradients are computed one by one, by
backpropagation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer.batching import Batch, Windows, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.packing import make_packed_batch

LONG_UNIT = 128
"""Number of inputs above which a unit's gradient is computed separately."""
_INPUTS_AT_ONCE = 1024
"""Inputs in one pass; with 20,000 words their scores are 80 MB."""

Gradients = dict[str, Tensor]
"""Gradients by the name of the weight."""


class ClippedGradients:
    """Sums clipped gradients of units of a text; a unit is an array of window indices."""

    def __init__(
        self,
        model: TransformerLanguageModel,
        text: EncodedText,
        windows: Windows,
        units: Sequence[np.ndarray],
        clipping_norm: float,
    ) -> None:
        self._model, self._text, self._windows, self._units = model, text, windows, units
        self._norm, self._is_target = clipping_norm, text.is_target()
        self._inputs = np.array([int(windows.length[unit].sum()) for unit in units])

    def of(self, chosen: np.ndarray) -> tuple[Gradients, np.ndarray]:
        """The sum of these units' clipped gradients, by index, and the norms before clipping ``(U,)``."""
        total = {name: torch.zeros_like(weight) for name, weight in self._model.named_parameters()}
        norms = np.zeros(len(chosen))
        order = np.argsort(self._inputs[chosen], kind="stable")
        short = order[self._inputs[chosen[order]] <= LONG_UNIT]
        for part in self._parts(chosen, short):
            norms[part] = self._add_short(total, [self._units[index] for index in chosen[part].tolist()])
        for place in order[len(short) :].tolist():
            norms[place] = self._add_long(total, self._units[int(chosen[place])])
        return total, norms

    def _parts(self, chosen: np.ndarray, order: np.ndarray) -> Iterator[np.ndarray]:
        """Parts that fit into one pass, with units of similar length, as places in ``chosen``."""
        begin = 0
        for end in range(1, len(order) + 1):
            longest_next = self._inputs[chosen[order[end]]] if end < len(order) else None
            if longest_next is None or (end + 1 - begin) * longest_next > _INPUTS_AT_ONCE:
                yield order[begin:end]
                begin = end

    def _add_short(self, total: Gradients, units: Sequence[np.ndarray]) -> np.ndarray:
        """Add units of one row each; returns their norms."""
        if all(len(unit) == 1 for unit in units):
            batch = make_batch(self._text, self._is_target, self._windows, np.concatenate(units))
        else:
            batch = make_packed_batch(self._text, self._is_target, self._windows, units)
        return add_clipped_rows(self._model, batch, self._norm, total).numpy()

    def _add_long(self, total: Gradients, unit: np.ndarray) -> float:
        """Add one unit by backpropagation; returns its norm."""
        model = self._model
        model.requires_grad_(True)
        model.zero_grad()
        step = max(1, _INPUTS_AT_ONCE // int(self._windows.length[unit].max()))
        for begin in range(0, len(unit), step):
            batch = make_batch(self._text, self._is_target, self._windows, unit[begin : begin + step])
            hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)
            chunked_cross_entropy(hidden, model.embedding.weight, batch.targets).backward()
        found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        norm = float(torch.stack([gradient.square().sum() for gradient in found.values()]).sum().sqrt())
        for name, gradient in found.items():
            total[name] += gradient * clipping_factor(torch.tensor(norm), self._norm)
        model.zero_grad()
        return norm


def clipping_factor(norms: Tensor, clipping_norm: float) -> Tensor:
    """The factors that reduce gradients of these norms to ``clipping_norm`` at most."""
    return (clipping_norm / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_max(1.0)


def add_clipped_rows(model: TransformerLanguageModel, batch: Batch, clipping_norm: float, total: Gradients) -> Tensor:
    """Add the clipped gradient of each row's summed loss (a row is a unit) to ``total``; returns the norms (U,)."""
    layers, embedded = _passes(model, batch)
    scores, hidden = layers.pop("")  # gradients at the scores, and inputs of the projection
    e = embedded.grad
    assert e is not None
    same_token = batch.tokens[:, :, None] == batch.tokens[:, None, :]  # (U, T, T)
    places = batch.places if batch.places is not None else torch.arange(e.shape[1]).expand(e.shape[:2])
    same_place = places[:, :, None] == places[:, None, :]
    products = e @ e.mT  # (U, T, T)
    squares = (products * (same_token.float() + same_place.float())).sum((1, 2))
    squares += ((scores @ scores.mT) * (hidden @ hidden.mT)).sum((1, 2))
    # Product of the embedding's and the projection's gradients: scores row s at the input tokens t.
    at_tokens = scores.gather(2, batch.tokens[:, None, :].expand(-1, scores.shape[1], -1))  # (U, s, t)
    squares += 2 * (at_tokens * (hidden @ e.mT)).sum((1, 2))
    modules = dict(model.named_modules())
    for name, (inputs, gradient) in layers.items():
        if isinstance(modules[name], nn.Linear):
            squares += ((inputs @ inputs.mT) * (gradient @ gradient.mT)).sum((1, 2))
        else:
            squares += (inputs * gradient).sum(1).square().sum(1)
        squares += gradient.sum(1).square().sum(1)  # the bias
    norms = squares.clamp_min(0).sqrt()
    factor = clipping_factor(norms, clipping_norm)[:, None, None]  # (U, 1, 1)
    e = (factor * e).flatten(0, 1)
    total["embedding.weight"].index_add_(0, batch.tokens.flatten(), e)
    total["embedding.weight"].addmm_((factor * scores).flatten(0, 1).mT, hidden.flatten(0, 1))
    total["positions.weight"].index_add_(0, places.flatten(), e)
    for name, (inputs, gradient) in layers.items():
        clipped = (factor * gradient).flatten(0, 1)
        if isinstance(modules[name], nn.Linear):
            total[f"{name}.weight"].addmm_(clipped.mT, inputs.flatten(0, 1))
        else:
            total[f"{name}.weight"] += (clipped * inputs.flatten(0, 1)).sum(0)
        total[f"{name}.bias"] += clipped.sum(0)
    return norms


def _passes(model: TransformerLanguageModel, batch: Batch) -> tuple[dict[str, tuple[Tensor, Tensor]], Tensor]:
    """Run one forward and one backward pass. Returns, by the name of each linear layer and norm, its inputs
    (normalised, for a norm) and the gradients at its outputs, (U, T, ·) each. Under ``""``: gradients at the scores (U,
    T, V) and hidden states (U, T, D). Last: embedded tokens (U, T, D) with their gradient."""
    with _watched(model) as (inputs, gradients, embeddings):
        hidden = model(batch.tokens, batch.places, batch.segments)
        states = hidden.detach()
        scores = functional.linear(states, model.embedding.weight).softmax(-1)
        flat = scores.flatten(0, 1)
        flat[batch.positions, batch.targets] -= 1
        others = torch.ones(len(flat), dtype=torch.bool)
        others[batch.positions] = False
        flat[others] = 0
        hidden.backward(scores @ model.embedding.weight)
    layers = {name: (read, gradients[name]) for name, read in inputs.items()}
    return {**layers, "": (scores, states)}, embeddings[0]


@contextmanager
def _watched(model: TransformerLanguageModel) -> Iterator[tuple[dict[str, Tensor], dict[str, Tensor], list[Tensor]]]:
    """Record the inputs of layers and the gradients at their outputs; weights have no gradients inside the block."""
    seen: dict[str, Tensor] = {}
    gradients: dict[str, Tensor] = {}
    embeddings: list[Tensor] = []
    handles = []

    def watch(name: str, module: nn.Module) -> None:
        def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            read = inputs[0].detach()
            if isinstance(module, nn.LayerNorm):
                read = functional.layer_norm(read, module.normalized_shape, eps=module.eps)
            seen[name] = read
            output.register_hook(lambda gradient: gradients.update({name: gradient.detach()}))

        handles.append(module.register_forward_hook(keep))

    def begin(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embeddings.append(output.detach().requires_grad_())
        return embeddings[-1]

    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.LayerNorm):
            watch(name, module)
    handles.append(model.embedding.register_forward_hook(begin))
    model.requires_grad_(False)
    try:
        yield seen, gradients, embeddings
    finally:
        model.requires_grad_(True)
        for handle in handles:
            handle.remove()
