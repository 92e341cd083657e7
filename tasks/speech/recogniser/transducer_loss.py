"""The transducer's loss in PyTorch alone: the same as ``torchaudio.functional.rnnt_loss``, without a compiled kernel.

The loss is minus the log-probability of a text given the joiner's scores, summed over all alignments. Source: Graves,
"Sequence Transduction with Recurrent Neural Networks" (2012), section 2.4. A node (t, u) of the lattice means that t
frames are consumed and u labels are written. From it a blank leads to (t + 1, u), and label u + 1 leads to (t, u + 1).
An alignment is a path from (0, 0) to (T, U).

The gradient with respect to the logits has a closed form, so no graph of the lattice is stored. Besides the logits
(B, T, U + 1, V), only the gradient has that size, and it exists only during the backward pass. Logits are read in
pieces that fit the processor's cache, and padding is never read.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from tasks.errors import ModelError

_PRECISION = torch.float64
"""A path's log-probability is in the thousands, where float32 has a resolution of 1e-4. The lattice is small compared
with the logits, so double precision costs nearly nothing."""
_PIECE = {"cpu": 1 << 16, "cuda": 1 << 25}
"""Logits processed at once: 0.25 MB in float32 fit a core's cache; a graphics processor needs large pieces."""


def transducer_loss(logits: Tensor, targets: Tensor, frames: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Minus the log-probability (B,) of each text in nats, summed over all alignments.

    ``logits`` (B, T, U + 1, V), float64, float32, bfloat16 or float16: the joiner's scores; ``targets`` (B, U): label
    ids, none of them ``blank``; ``frames`` (B,), 1 to T, and ``lengths`` (B,), 0 to U: frames and labels of each
    utterance, any integer type.

    Half-precision logits are processed in float32, which is also the type of their loss; their gradient has their type.
    Padding may have any value and gets gradient 0. Differentiable once in ``logits``.

    Raises ``ModelError`` if a score is NaN or plus infinity, or if no alignment has a probability above 0.
    """
    frames, lengths, ids = (each.long().to(logits.device) for each in (frames, lengths, targets))
    with torch.autocast(logits.device.type, enabled=False):
        losses: Tensor = _TransducerLoss.apply(logits, ids, frames, lengths, blank)
    return losses


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]
    blank: int


class _TransducerLoss(torch.autograd.Function):
    """Losses (B,) whose gradient is computed from the posterior probabilities of the forward pass."""

    @staticmethod
    def forward(context: _Context, logits: Tensor, ids: Tensor, frames: Tensor, lengths: Tensor, blank: int) -> Tensor:
        batch, time, width, _ = logits.shape
        arithmetic = torch.promote_types(logits.dtype, torch.float32)
        # Log-probabilities of a blank (B, T, U + 1) and of the next label (B, T, U) at each node; 0 in the padding.
        blanks = torch.zeros(batch, time, width, dtype=arithmetic, device=logits.device)
        labels = torch.zeros(batch, time, width - 1, dtype=arithmetic, device=logits.device)
        for index, times, following in _pieces(logits, ids, frames, lengths):
            count = following.shape[1]
            scores = torch.log_softmax(logits[index, times, : count + 1], -1, dtype=arithmetic)  # (t, u + 1, V)
            blanks[index, times, : count + 1] = scores[..., blank]
            labels[index, times, :count] = scores[:, :count].gather(2, following[..., None])[..., 0]
        blank_edges, label_edges = _edges(blanks, labels, frames, lengths)
        sums = _path_sums(  # (2B, T + 1, U + 1): paths to a node, and paths from a node seen from the end
            torch.cat([blank_edges, blank_edges.flip(1, 2)]), torch.cat([label_edges, label_edges.flip(1, 2)])
        )
        log_likelihood = sums[:batch, -1, -1]
        before = sums[:batch, :-1] - log_likelihood[:, None, None]  # (B, T, U + 1), normalised
        after = sums[batch:].flip(1, 2)  # (B, T + 1, U + 1)
        # Probability that the alignment passes through a node, and that it leaves it by a blank or by a label.
        posteriors = (
            (before + after[:, :-1]).exp_(),
            (before + blank_edges).add_(after[:, 1:]).exp_(),
            (before[..., :-1] + label_edges[:, :-1]).add_(after[:, :-1, 1:]).exp_(),
        )
        context.save_for_backward(logits, ids, frames, lengths, *(each.to(arithmetic) for each in posteriors))
        context.blank = blank
        _check_finite(log_likelihood)
        return -log_likelihood.to(arithmetic)

    @staticmethod
    @once_differentiable
    def backward(context: _Context, weights: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Gradient (B, T, U + 1, V) of the sum of ``weights`` (B,) * losses.

        d loss / d logit k at a node = P(node) * softmax(logits)_k - P(blank edge) [k = blank]
        - P(label edge) [k = label], with posterior probabilities P.
        """
        logits, ids, frames, lengths, *posteriors = context.saved_tensors
        scale = weights.to(posteriors[0].dtype)[:, None, None]
        nodes, blanks, labels = (each * scale for each in posteriors)
        gradient = torch.zeros_like(logits, memory_format=torch.contiguous_format)
        for index, times, following in _pieces(logits, ids, frames, lengths):
            count = following.shape[1]
            piece = torch.softmax(logits[index, times, : count + 1], -1, dtype=nodes.dtype)  # (t, u + 1, V)
            piece.mul_(nodes[index, times, : count + 1, None])
            piece[..., context.blank] -= blanks[index, times, : count + 1]
            piece[:, :count].scatter_add_(2, following[..., None], labels[index, times, :count].neg()[..., None])
            gradient[index, times, : count + 1] = piece
        return gradient, None, None, None, None


def _pieces(logits: Tensor, ids: Tensor, frames: Tensor, lengths: Tensor) -> Iterator[tuple[int, slice, Tensor]]:
    """Utterance, frames, and the labels (t, u) that follow its nodes; together they are all but the padding."""
    size = _PIECE.get(logits.device.type, _PIECE["cpu"]) // logits.shape[-1]
    for index, (time, length) in enumerate(zip(frames.tolist(), lengths.tolist(), strict=True)):
        step = max(1, size // (length + 1))
        for start in range(0, time, step):
            times = slice(start, min(time, start + step))
            yield index, times, ids[index, :length].expand(times.stop - start, -1)


def _edges(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Log-weights of blank edges (B, T, U + 1) and label edges (B, T + 1, U), so that every utterance ends at (T, U).

    From the end (frames, lengths) of a shorter utterance a single path of weight 1 leads on to (T, U): blanks to the
    last frame, then labels. All other edges after the end have weight 0. So ragged batches need no special case.
    """
    time, width = blanks.shape[1:]
    t = torch.arange(time + 1, device=blanks.device)[None, :, None]
    u = torch.arange(width, device=blanks.device)[None, None, :]
    ends, last = frames[:, None, None], lengths[:, None, None]
    never = torch.tensor(-torch.inf, dtype=_PRECISION, device=blanks.device)
    on = torch.where((t[:, :-1] >= ends) & (u == last), 0.0, never)
    blank_edges = torch.where((t[:, :-1] < ends) & (u <= last), blanks.to(_PRECISION), on)
    label_edges = torch.where((t == time) & (u[..., :-1] >= last), 0.0, never)
    within = (t[:, :-1] < ends) & (u[..., :-1] < last)
    label_edges[:, :-1] = torch.where(within, labels.to(_PRECISION), label_edges[:, :-1])
    return blank_edges, label_edges


def _path_sums(blank_edges: Tensor, label_edges: Tensor) -> Tensor:
    """Log of the summed weight (N, T + 1, U + 1) of all paths from (0, 0) to each node (equations 16-20).

    ``blank_edges`` (N, T, U + 1) and ``label_edges`` (N, T + 1, U) are log-weights. All nodes of an anti-diagonal
    t + u = d depend on diagonal d - 1 only. So each diagonal is computed at once: T + U steps, no loop over nodes.
    """
    count, time, width = blank_edges.shape  # width = U + 1
    diagonals = time + width
    # Edges by the diagonal d and the column u at which they end: [d, 0] are labels, [d, 1] are blanks. In this layout
    # the neighbours of a node are one diagonal, and at most one column, away.
    edges = blank_edges.new_full((diagonals, 2, count, width), -torch.inf)
    row, step = 2 * count * width, count * width
    edges.as_strided((count, time + 1, width - 1), (width, row, row + 1), row + 1).copy_(label_edges)
    edges.as_strided((count, time, width), (width, row, row + 1), row + step).copy_(blank_edges)
    # Column 0 is for "one label fewer than none".
    sums = edges.new_full((diagonals, count, width + 1), -torch.inf)
    sums[0, :, 1] = 0.0
    step = count * (width + 1)
    sources = sums.as_strided((diagonals - 1, 2, count, width), (step, 1, width + 1, 1))
    for source, arriving, found in zip(sources.unbind(), edges[1:].unbind(), sums[1:, :, 1:].unbind(), strict=True):
        torch.logaddexp(*arriving.add_(source).unbind(), out=found)
    return sums.as_strided((count, time + 1, width), (width + 1, step, step + 1), 1)


def _check_finite(log_likelihood: Tensor) -> None:
    """Raise ``ModelError`` if the log-likelihood (B,) of an utterance is not finite."""
    if undefined := (~log_likelihood.isfinite()).nonzero()[:, 0].tolist():
        reason = (
            "no alignment of its text has a probability above 0"
            if log_likelihood[undefined[0]] == -torch.inf
            else "the joiner's scores are not finite (NaN or infinite); try a lower learning rate"
        )
        raise ModelError(
            f"the transducer's loss is undefined for {len(undefined)} of {len(log_likelihood)} utterances of the "
            f"batch, first {undefined[0]}: {reason}"
        )
