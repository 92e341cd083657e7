"""Cross entropy over a large vocabulary without the full table of scores.

The scores of N positions over V words, (N, V), are by far the largest tensor of a word-level language model. Here they
exist for a few positions at a time. Each chunk's scores give its loss and its gradients with respect to the hidden
states (N, D) and the projection (V, D), and are then overwritten.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK_POSITIONS = 512
"""Positions per chunk: with V = 20,000 its scores are 20 MB in bfloat16. Smaller chunks would save little more, and
accumulate the projection's gradient more often."""
ROWS_IN_CACHE = 16
"""Positions whose scores (0.6 MB) are processed at once."""
SCORES_ON_GPU = 1 << 29
"""Scores of a chunk on a GPU, 1 GB in bfloat16. Small chunks in rows would be thousands of kernels a step, which take
longer to start than to run."""


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Computes gradients in the forward pass, while a chunk's scores are in memory."""

    @staticmethod
    def forward(
        context: torch.autograd.function.FunctionCtx,
        hidden: Tensor,
        projection: Tensor,
        targets: Tensor,
        weights: Tensor,
        arithmetic: torch.dtype,
    ) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            loss, hidden_gradient, projection_gradient = _loss_and_gradients(
                hidden, projection, targets, weights, arithmetic
            )
        context.save_for_backward(hidden_gradient, projection_gradient)
        return loss

    @staticmethod
    @once_differentiable
    def backward(context: torch.autograd.function.FunctionCtx, loss_gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden_gradient, projection_gradient = context.saved_tensors  # type: ignore[attr-defined]
        # Not in place: the backward pass may run again on the same graph.
        return hidden_gradient * loss_gradient, projection_gradient * loss_gradient, None, None, None


def _loss_and_gradients(
    hidden: Tensor, projection: Tensor, targets: Tensor, weights: Tensor, arithmetic: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    total = torch.zeros((), dtype=projection.dtype, device=hidden.device)
    rounded_hidden, rounded_projection = hidden.to(arithmetic), projection.to(arithmetic)
    hidden_gradient = torch.empty_like(hidden)  # (N, D)
    projection_gradient = (torch.empty_like if len(hidden) else torch.zeros_like)(projection)  # (V, D)
    weights = weights.to(projection.dtype)
    buffer = _score_buffer(projection, arithmetic, len(hidden))
    for start in range(0, len(hidden), len(buffer)):
        chunk = slice(start, start + len(buffer))
        weight = weights[chunk].unsqueeze(1)  # (n, 1)
        if hidden.is_cuda:
            powers, log_sums = _shares(rounded_hidden[chunk], rounded_projection, targets[chunk], buffer)
            share = weight
        else:
            powers, log_sums, sums = _powers(rounded_hidden[chunk], rounded_projection, buffer)  # (n, V), (n,), (n,)
            share = weight / sums.unsqueeze(1)  # (n, 1)
        target_rows = projection[targets[chunk]]  # (n, D)
        target_scores = (hidden[chunk].to(projection.dtype) * target_rows).sum(1)  # (n,)
        total += (weights[chunk] * (log_sums - target_scores)).sum()
        # d loss / d scores = weight * (powers / sums - one hot). The factor weight / sums goes to the narrow side of
        # both products, and the one-hot part is added by row: only the products read the wide (n, V) tensor.
        hidden_gradient[chunk] = (powers @ rounded_projection).to(share.dtype) * share - weight * target_rows
        weighted = (hidden[chunk] * share).to(arithmetic)  # (n, D)
        if start == 0:
            projection_gradient.copy_(powers.t() @ weighted)  # (V, n) @ (n, D)
        else:
            projection_gradient += powers.t() @ weighted
        projection_gradient.index_add_(0, targets[chunk], (hidden[chunk] * weight).to(projection.dtype), alpha=-1)
    return total, hidden_gradient, projection_gradient


def _score_buffer(projection: Tensor, arithmetic: torch.dtype, positions: int) -> Tensor:
    """Memory for the scores (n, V) of a chunk; it has few sizes, since many sizes fragment the heap."""
    chunks = 1
    if projection.is_cuda:
        most = SCORES_ON_GPU // (CHUNK_POSITIONS * len(projection))
        chunks = max(1, min(most, -(-positions // CHUNK_POSITIONS)))
    return torch.empty(chunks * CHUNK_POSITIONS, len(projection), dtype=arithmetic, device=projection.device)


def _powers(hidden: Tensor, projection: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """exp(score - largest score) (n, V), log of the sum of exp(score) (n,), and sum of the powers (n,)."""
    scores = torch.mm(hidden, projection.t(), out=buffer[: len(hidden)])  # (n, V)
    accumulator = torch.promote_types(scores.dtype, torch.float32)
    largest, sums = [], []
    # A few rows at a time, so that they remain in the processor's cache for all four passes.
    for rows in scores.split(len(buffer) if scores.is_cuda else ROWS_IN_CACHE):
        top = rows.amax(1, keepdim=True)  # (r, 1)
        sums.append(rows.sub_(top).exp_().sum(1, dtype=accumulator))
        largest.append(top.squeeze(1).to(accumulator))
    row_sums = torch.cat(sums)
    return scores, torch.cat(largest) + row_sums.log(), row_sums


def _shares(hidden: Tensor, projection: Tensor, targets: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
    """Return softmax(score) (n, V) and log of the sum of exp(score) (n,), by one kernel. On a GPU the passes of
    ``_powers`` take as long as the products. The sum comes from the target's score and share, so it is as exact as that
    share (0.2 % in bfloat16, without bias)."""
    scores = torch.mm(hidden, projection.t(), out=buffer[: len(hidden)])  # (n, V)
    shares = torch.softmax(scores, dim=1)
    own_scores, own_shares = (each.gather(1, targets.unsqueeze(1)).squeeze(1).float() for each in (scores, shares))
    return shares, own_scores - own_shares.clamp_min(torch.finfo(torch.float32).tiny).log()


def chunked_cross_entropy(
    hidden: Tensor,
    projection: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    arithmetic: torch.dtype | None = None,
) -> Tensor:
    """The weighted sum over positions of -log softmax(hidden @ projection.T)[target], in nats.

    ``hidden`` (N, D), ``projection`` (V, D), ``targets`` (N,) of token ids, ``weights`` (N,), 1 each by default.
    ``arithmetic`` is the type of the wide products (default: the projection's type). Sums, the targets' own scores and
    the result have the projection's type. It is differentiable once in ``hidden`` and ``projection``.
    """
    if weights is None:
        weights = torch.ones(len(targets), dtype=projection.dtype, device=projection.device)
    return _ChunkedCrossEntropy.apply(hidden, projection, targets, weights, arithmetic or projection.dtype)


@torch.no_grad()
def chunked_log_probabilities(
    hidden: Tensor, projection: Tensor, targets: Tensor, arithmetic: torch.dtype | None = None
) -> Tensor:
    """The log-probability (N,) of each target in nats; arguments as in ``chunked_cross_entropy``."""
    return torch.cat([own for own, *_ in _chunks(hidden, projection, targets, arithmetic or projection.dtype)])


@torch.no_grad()
def chunked_class_probabilities(
    hidden: Tensor, projection: Tensor, targets: Tensor, classes: Tensor
) -> tuple[Tensor, Tensor]:
    """Each target's log-probability (N,) in nats, and the probability (N, C) of classes of words at its place.

    ``classes`` (V, C): share of each class in each word. Both results use the same rows of scores.
    """
    chunks = _chunks(hidden, projection, targets, projection.dtype)
    scores, found = zip(*((own, powers @ classes / sums[:, None]) for own, powers, sums in chunks), strict=True)
    return torch.cat(scores), torch.cat(found)


def _chunks(
    hidden: Tensor, projection: Tensor, targets: Tensor, arithmetic: torch.dtype
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For each chunk, at least one: the targets' log-probabilities (n,), powers (n, V) and their sums (n,)."""
    rounded_hidden, rounded_projection = hidden.to(arithmetic), projection.to(arithmetic)
    buffer = _score_buffer(projection, arithmetic, len(targets))
    with torch.autocast(hidden.device.type, enabled=False):
        for start in range(0, max(1, len(targets)), len(buffer)):
            chunk = slice(start, start + len(buffer))
            powers, log_sums, sums = _powers(rounded_hidden[chunk], rounded_projection, buffer)
            own_scores = (hidden[chunk].to(projection.dtype) * projection[targets[chunk]]).sum(1)
            yield (own_scores - log_sums).to(projection.dtype), powers, sums
