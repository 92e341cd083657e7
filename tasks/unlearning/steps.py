"""The steps of a gradient method, and those of ordinary training that other methods need."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from tasks.errors import ModelError, ParameterError
from tasks.language_model.learners import Learner, MarkedText, PlacedBatch, batches
from tasks.language_model.transformer.batching import Batch
from tasks.training.optimiser import ADAM_BETAS
from tasks.unlearning.method import ForgetBatch, GradientMethod
from tasks.unlearning.request import Request

_LONGEST_GRADIENT = 1.0
_BRANCHES = 4
"""Of a seed: each text has an order of its own."""


def gradient_steps(method: GradientMethod, request: Request) -> Iterator[tuple[float, Learner]]:
    """The models of a method's strengths.

    Raises ``ModelError`` where a weight is no longer a number, ``ParameterError`` where the refilled text is missing.
    """
    if method.refilled_weight and request.refilled is None:
        raise ParameterError(
            f"{method.kind} with refilled_weight {method.refilled_weight!r} needs the text to forget with other words "
            "in the private places; give --refilled, or another method"
        )
    model = request.start.copy()
    reference = (request.base if method.reference == "base" else request.start).log_probabilities(request.forget)
    forget, retain, refilled = drawn_batches(
        model, (request.forget, request.retain, request.refilled or request.retain), method.batch_tokens, request.seed
    )
    kept = mean_loss if method.retain == "loss" else _divergence_from(request.start)

    def losses() -> Iterator[Tensor]:
        if method.reads_forgotten and method.attack_steps:
            yield _behind_attack(model, method, request.forget, forget, reference)
        elif method.reads_forgotten:
            yield _forgetting(model, method, request.forget, next(forget), reference)
        if method.retain_weight:
            yield method.retain_weight * kept(model, next(retain).batch)
        if method.refilled_weight:
            yield method.refilled_weight * mean_loss(model, next(refilled).batch)

    for step in trained_steps(model, losses, method.learning_rate, int(method.steps[-1])):
        if step in method.steps:
            yield float(step), model.copy()


def trained_on(
    start: Learner, marked: MarkedText, steps: int, learning_rate: float, batch_tokens: int, seed: int
) -> Learner:
    """A copy of a model after so many steps of ordinary training."""
    model = start.copy()
    drawn = batches(marked, model.longest, batch_tokens, seed)
    for _ in trained_steps(model, lambda: iter([mean_loss(model, next(drawn).batch)]), learning_rate, steps):
        pass
    return model


def drawn_batches(
    model: Learner, texts: tuple[MarkedText, ...], batch_tokens: int, seed: int
) -> list[Iterator[PlacedBatch]]:
    """Of each of up to four texts, batches in an order of its own."""
    return [batches(text, model.longest, batch_tokens, _BRANCHES * seed + branch) for branch, text in enumerate(texts)]


def trained_steps(
    model: Learner,
    losses: Callable[[], Iterator[Tensor]],
    learning_rate: float,
    steps: int,
    parameters: list[nn.Parameter] | None = None,
) -> Iterator[int]:
    """Numbers of the steps, from 1, each after it is done: down the sum of the losses, of which one is in memory at a
    time. ``parameters``: those that learn, where not all do.

    Raises ``ModelError`` where a gradient is no longer a number.
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
    """Nats a target."""
    return model.loss(batch) / len(batch.targets)


def _divergence_from(start: Learner) -> Callable[[Learner, Batch], Tensor]:
    """KL(start || model), in nats a target."""

    def divergence(model: Learner, batch: Batch) -> Tensor:
        with torch.no_grad():
            before = start.scores(batch).log_softmax(1)  # (N, V)
        now = model.scores(batch).log_softmax(1)
        return (before.exp() * (before - now)).sum() / len(batch.targets)

    return divergence


def _forgetting(
    model: Learner, method: GradientMethod, marked: MarkedText, drawn: PlacedBatch, reference: np.ndarray
) -> Tensor:
    """The part of the loss that forgets."""
    batch = drawn.batch
    own = model.log_probability(batch)
    weights = method.weights(
        ForgetBatch(
            log_probability=own,
            reference=torch.from_numpy(reference[drawn.places]).to(own),
            is_private=torch.from_numpy(marked.is_private[drawn.places]).to(own.device),
            sentence=batch.rows.to(own.device),
        )
    )
    return model.loss(batch, weights.to(own)) / len(batch.targets)


def _behind_attack(
    model: Learner, method: GradientMethod, marked: MarkedText, drawn: Iterator[PlacedBatch], reference: np.ndarray
) -> Tensor:
    """A loss whose gradient is that of the forgetting part behind training on another batch."""
    attacked, known = model.copy(), next(drawn).batch
    rest = method.attack_rate, method.attack_steps
    for _ in trained_steps(attacked, lambda: iter([mean_loss(attacked, known)]), *rest):
        pass
    attacked.network.zero_grad()
    with attacked.learning():
        _forgetting(attacked, method, marked, next(drawn), reference).backward()
    pairs = zip(model.network.parameters(), attacked.network.parameters(), strict=True)
    return torch.stack([(own * other.grad).sum() for own, other in pairs if other.grad is not None]).sum()
