"""Training steps of gradient methods, and ordinary ones for other methods."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from tasks.errors import ModelError, ParameterError
from tasks.language_model.learners import Learner, MarkedText, PlacedBatch, batches
from tasks.language_model.opening import open_learner
from tasks.language_model.transformer.batching import Batch
from tasks.training.optimiser import ADAM_BETAS

if TYPE_CHECKING:
    from tasks.unlearning.method import GradientMethod, Request

_LONGEST_GRADIENT = 1.0
_BRANCHES = 4
"""Number of derived seeds of a seed, so that each text has its own order."""
Forgetting = Callable[[Learner, PlacedBatch], Tensor]
"""The loss of a model on a batch of the text to forget."""


def open_pair(model: str, base: str) -> tuple[Learner, Learner]:
    """Open a model and its base. Raises ``ModelError`` where they have different vocabularies."""
    opened, before = open_learner(model), open_learner(base, "--base")
    if opened.vocabulary_hash != before.vocabulary_hash:
        raise ModelError(f"--model {model!r} and --base {base!r} have different vocabularies")
    return opened, before


def gradient_steps(
    method: "GradientMethod",
    request: "Request",
    forgetting: Callable[[Learner, Iterator[PlacedBatch]], Tensor] | None = None,
) -> Iterator[tuple[float, Learner]]:
    """The strengths of a method and their models. ``forgetting``: the loss on the next batches of the text to forget.

    Raises ``ModelError`` where a gradient is not finite, ``ParameterError`` where the refilled text is missing.
    """
    if method.refilled_weight and request.refilled is None:
        raise ParameterError(
            f"{method.kind} with refilled_weight {method.refilled_weight!r} needs the text to forget with other words "
            "in the private places; give --refilled, or another method"
        )
    model = request.start.copy()
    forget, retain, refilled = (
        batches(text, model.longest, method.batch_tokens, _BRANCHES * request.seed + branch)
        for branch, text in enumerate((request.forget, request.retain, request.refilled or request.retain))
    )

    def losses() -> Iterator[Tensor]:
        if forgetting is not None:
            yield forgetting(model, forget)
        if method.retain_weight:
            batch, _ = next(retain)
            loss = mean_loss(model, batch) if method.retain == "loss" else _divergence(request.start, model, batch)
            yield method.retain_weight * loss
        if method.refilled_weight:
            yield method.refilled_weight * mean_loss(model, next(refilled)[0])

    for step in trained_steps(model, losses, method.learning_rate, int(method.steps[-1])):
        if step in method.steps:
            yield float(step), model.copy()


def trained_on(
    start: Learner, marked: MarkedText, steps: int, learning_rate: float, batch_tokens: int, seed: int
) -> Learner:
    """A copy of a model after this many steps of ordinary training."""
    model = start.copy()
    drawn = batches(marked, model.longest, batch_tokens, seed)
    for _ in trained_steps(model, lambda: iter([mean_loss(model, next(drawn)[0])]), learning_rate, steps):
        pass
    return model


def trained_steps(
    model: Learner,
    losses: Callable[[], Iterator[Tensor]],
    learning_rate: float,
    steps: int,
    parameters: list[nn.Parameter] | None = None,
) -> Iterator[int]:
    """Minimise the sum of the losses with AdamW; yields the number of each step, from 1, after it is done. Only one
    loss is in memory at a time. ``parameters``: the trained ones, by default all.

    Raises ``ModelError`` where a gradient is no longer finite.
    """
    learned = list(model.network.parameters()) if parameters is None else parameters
    optimiser = AdamW(learned, lr=learning_rate, betas=ADAM_BETAS, weight_decay=0.0)
    for step in range(1, steps + 1):
        optimiser.zero_grad()
        with model.learning():
            for loss in losses():
                loss.backward()
        length = clip_grad_norm_(learned, _LONGEST_GRADIENT)
        if not torch.isfinite(length):
            raise ModelError("a gradient is no longer a number; give a smaller learning_rate, or fewer steps")
        optimiser.step()
        yield step


def mean_loss(model: Learner, batch: Batch) -> Tensor:
    """Mean loss in nats a target."""
    return model.loss(batch) / len(batch.targets)


def _divergence(start: Learner, model: Learner, batch: Batch) -> Tensor:
    """KL(start || model), in nats a target."""
    with torch.no_grad():
        before = start.scores(batch).log_softmax(1)  # (N, V)
    now = model.scores(batch).log_softmax(1)
    return (before.exp() * (before - now)).sum() / len(batch.targets)


def after_attack(
    loss: Forgetting, model: Learner, drawn: Iterator[PlacedBatch], learning_rate: float, steps: int
) -> Tensor:
    """A loss of the model with the gradient that ``loss`` has after an attack: training on another batch."""
    attacked, (known, _) = model.copy(), next(drawn)
    for _ in trained_steps(attacked, lambda: iter([mean_loss(attacked, known)]), learning_rate, steps):
        pass
    attacked.network.zero_grad()
    with attacked.learning():
        loss(attacked, next(drawn)).backward()
    pairs = zip(model.network.parameters(), attacked.network.parameters(), strict=True)
    return torch.stack([(own * other.grad).sum() for own, other in pairs if other.grad is not None]).sum()
