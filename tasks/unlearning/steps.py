"""The steps of a gradient method, and those of ordinary training that other methods need."""

import copy
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from tasks.errors import ModelError, ParameterError
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.scoring import score_targets
from tasks.torch_setup import has_bfloat16, set_dropout
from tasks.unlearning.method import ForgetBatch, GradientMethod
from tasks.unlearning.request import MarkedText, PlacedBatch, Request, batches

_BETAS = (0.9, 0.98)
_LONGEST_GRADIENT = 1.0
_BRANCHES = 4
"""Of a seed: each text has an order of its own."""


def gradient_steps(method: GradientMethod, request: Request) -> Iterator[tuple[float, TransformerLanguageModel]]:
    """The models of a method's strengths.

    Raises ``ModelError`` where a weight is no longer a number, ``ParameterError`` where the refilled text is missing.
    """
    if method.refilled_weight and request.refilled is None:
        raise ParameterError(
            f"{method.kind} with refilled_weight {method.refilled_weight!r} needs the text to forget with other words "
            "in the private places; give --refilled, or another method"
        )
    model = _fresh(request.start)
    optimiser = AdamW(model.parameters(), lr=method.learning_rate, betas=_BETAS, weight_decay=0.0)
    reference = _by_place(request.base if method.reference == "base" else request.start, request.forget)
    forget, retain, refilled = (
        batches(text, model.architecture.maximum_tokens, method.batch_tokens, _BRANCHES * request.seed + branch)
        for branch, text in enumerate((request.forget, request.retain, request.refilled or request.retain))
    )
    for step in range(1, int(method.steps[-1]) + 1):
        optimiser.zero_grad()
        if method.reads_forgotten:
            _forget(model, method, request.forget, next(forget), reference)
        if method.retain_weight:
            (method.retain_weight * _mean_loss(model, next(retain).batch)).backward()
        if method.refilled_weight:
            (method.refilled_weight * _mean_loss(model, next(refilled).batch)).backward()
        _move(model, optimiser)
        if step in method.steps:
            yield float(step), copy.deepcopy(model).eval()


def trained_on(
    start: TransformerLanguageModel, marked: MarkedText, steps: int, learning_rate: float, batch_tokens: int, seed: int
) -> TransformerLanguageModel:
    """A copy of a model after so many steps of ordinary training; in evaluation mode."""
    model = _fresh(start)
    optimiser = AdamW(model.parameters(), lr=learning_rate, betas=_BETAS, weight_decay=0.0)
    drawn = batches(marked, model.architecture.maximum_tokens, batch_tokens, seed)
    for _ in range(steps):
        optimiser.zero_grad()
        _mean_loss(model, next(drawn).batch).backward()
        _move(model, optimiser)
    return model.eval()


def _fresh(start: TransformerLanguageModel) -> TransformerLanguageModel:
    model = copy.deepcopy(start).train()
    set_dropout(model, 0.0)
    return model


def _by_place(model: TransformerLanguageModel, marked: MarkedText) -> np.ndarray:
    """Log-probabilities of all ids of a text (T,), in nats; 0 where there is no target."""
    found = np.zeros(len(marked.text.tokens))
    found[marked.text.is_target()] = score_targets(model, marked.text).log_probability
    return found


def _forget(
    model: TransformerLanguageModel,
    method: GradientMethod,
    marked: MarkedText,
    drawn: PlacedBatch,
    reference: np.ndarray,
) -> None:
    """Add the gradient of the part of the loss that forgets."""
    batch = drawn.batch
    hidden = _hidden(model, batch)
    own = chunked_log_probabilities(
        hidden.detach(), model.embedding.weight.detach(), batch.targets, arithmetic=_arithmetic()
    )
    weights = method.weights(
        ForgetBatch(
            log_probability=own,
            reference=torch.from_numpy(reference[drawn.places]).to(own),
            is_private=torch.from_numpy(marked.is_private[drawn.places]),
            sentence=batch.rows,
        )
    )
    loss = chunked_cross_entropy(hidden, model.embedding.weight, batch.targets, weights.to(own), _arithmetic())
    (loss / len(batch.targets)).backward()


def _hidden(model: TransformerLanguageModel, batch: Batch) -> Tensor:
    """Hidden states (N, D) of the positions that count."""
    found: Tensor = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)
    return found


def _mean_loss(model: TransformerLanguageModel, batch: Batch) -> Tensor:
    """Nats a target."""
    hidden = _hidden(model, batch)
    loss = chunked_cross_entropy(hidden, model.embedding.weight, batch.targets, arithmetic=_arithmetic())
    return loss / len(batch.targets)


def _arithmetic() -> torch.dtype:
    """Of the products with the vocabulary, as in other training."""
    return torch.bfloat16 if has_bfloat16() else torch.float32


def _move(model: TransformerLanguageModel, optimiser: AdamW) -> None:
    length = clip_grad_norm_(model.parameters(), _LONGEST_GRADIENT)
    if not torch.isfinite(length):
        raise ModelError("a gradient is no longer a number; give a smaller learning_rate, or fewer steps")
    optimiser.step()
