"""The sum of the clipped gradients of many units: the gradient of each is never made.

A weight matrix of a linear layer with inputs a_t and gradients g_t at its outputs has for a unit the gradient
``sum over t of g_t a_t^T``, whose squared norm is ``sum over t, s of (g_t . g_s) (a_t . a_s)`` (ghost clipping:
Goodfellow 2015; Lee and Kifer 2021; Li et al. 2022, "Large language models can be strong differentially private
learners"). What was seen in one forward and one backward pass gives the norms, and then the sum of the gradients, each
g_t multiplied by the factor of its unit (book-keeping: Bu et al. 2023), so that no second pass is needed.

An embedding is a linear layer whose inputs are one-hot. Here it is the projection onto the vocabulary as well, so the
gradient of a unit is the sum of two, and its squared norm has the product of both.

For long units the T x T tables cost more than a gradient by itself: they are taken one by one, by plain
backpropagation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.training.batches import make_packed_batch
from tasks.language_model.transformer.batching import Batch, Windows, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy
from tasks.language_model.transformer.model import TransformerLanguageModel

LONG_UNIT = 128
"""Inputs from which on a unit is taken by itself."""
_INPUTS_AT_ONCE = 1024
"""With 20,000 words the scores of so many inputs are 80 MB."""

Gradients = dict[str, Tensor]
"""By the name of the weight."""


class ClippedGradients:
    """Adds up clipped gradients of units of a text, which are arrays of its windows."""

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
        """The sum of the clipped gradients of these units, by index, and the norm of each before clipping ``(U,)``."""
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
        """Units of like length in parts that fit, by their places in ``chosen``."""
        begin = 0
        for end in range(1, len(order) + 1):
            longest_next = self._inputs[chosen[order[end]]] if end < len(order) else None
            if longest_next is None or (end + 1 - begin) * longest_next > _INPUTS_AT_ONCE:
                yield order[begin:end]
                begin = end

    def _add_short(self, total: Gradients, units: Sequence[np.ndarray]) -> np.ndarray:
        """Units that are a row each; returns their norms."""
        if all(len(unit) == 1 for unit in units):
            batch = make_batch(self._text, self._is_target, self._windows, np.concatenate(units))
        else:
            batch = make_packed_batch(self._text, self._is_target, self._windows, units)
        return add_clipped_rows(self._model, batch, self._norm, total).numpy()

    def _add_long(self, total: Gradients, unit: np.ndarray) -> float:
        """One unit, by backpropagation."""
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
    """What gradients of these norms are multiplied by, so that none is longer than ``clipping_norm``."""
    return (clipping_norm / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_max(1.0)


def add_clipped_rows(model: TransformerLanguageModel, batch: Batch, clipping_norm: float, total: Gradients) -> Tensor:
    """Add the clipped gradient of the summed loss of each row (a unit) to ``total``; returns the norms (U,)."""
    layers, embedded = _passes(model, batch)
    scores, hidden = layers.pop("")  # what the projection reads and its gradient
    e = embedded.grad
    assert e is not None
    same_token = batch.tokens[:, :, None] == batch.tokens[:, None, :]  # (U, T, T)
    places = batch.places if batch.places is not None else torch.arange(e.shape[1]).expand(e.shape[:2])
    same_place = places[:, :, None] == places[:, None, :]
    products = e @ e.mT  # (U, T, T)
    squares = (products * (same_token.float() + same_place.float())).sum((1, 2))
    squares += ((scores @ scores.mT) * (hidden @ hidden.mT)).sum((1, 2))
    # Of the embedding and the projection together: each scores row s at the tokens that were read at t.
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
    """One forward and one backward pass: by the name of each linear layer and norm its inputs (of a norm: normalised)
    and the gradients at its outputs, (U, T, ·) each; under ``""`` the gradients at the scores (U, T, V) and the hidden
    states (U, T, D). And the embedded tokens (U, T, D) with their gradient."""
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
    """Keep what layers read and the gradients at their outputs; no weight has a gradient meanwhile."""
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
