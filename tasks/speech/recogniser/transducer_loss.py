"""The transducer's loss in PyTorch alone: the same as ``torchaudio.functional.rnnt_loss``, without a compiled kernel.

The loss is minus the log-probability of a text given the joiner's scores, summed over all alignments. Source: Graves,
"Sequence Transduction with Recurrent Neural Networks" (2012), section 2.4. The gradient with respect to the logits has
a closed form (``_gradient``), so no graph of the lattice is stored. Besides the logits (B, T, U + 1, V), only the
gradient has that size, and it exists only during the backward pass.

Losses are (B,), scores are not normalised, and gradients are not clamped: training needs no other variant. Logits are
read in pieces that fit the processor's cache, and padding is never read.

Alignments are summed by forward and backward variables over the lattice of frames and labels (equations 16-20). A node
(t, u) means that t frames are consumed and u labels are written. From it a blank leads to (t + 1, u), and label u + 1
leads to (t, u + 1). An alignment is a path from (0, 0) to (T, U).

All nodes of an anti-diagonal t + u = d depend on diagonal d - 1 only. So each diagonal is computed at once for all
utterances and in both directions: T + U small steps in all, without a loop over nodes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from tasks.errors import ModelError

PRECISION = torch.float64
"""A path's log-probability is in the thousands, where float32 has a resolution of 1e-4. The lattice is small compared
with the logits, so double precision costs nearly nothing."""


class _Alignments(NamedTuple):
    """Posterior probabilities of nodes and edges, given the text; padding is undefined."""

    log_likelihood: Tensor
    """(B,), in nats, ``PRECISION``."""
    nodes: Tensor
    """(B, T, U + 1): probability that the alignment passes through node (t, u)."""
    blanks: Tensor
    """(B, T, U + 1): probability that it leaves node (t, u) by a blank."""
    labels: Tensor
    """(B, T, U): probability that it leaves node (t, u) by label u + 1."""


def _alignments(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> _Alignments:
    """Sum over all alignments, and the share of every node and edge in the sum.

    ``blanks`` (B, T, U + 1): log-probability of a blank at each node; ``labels`` (B, T, U): log-probability of the
    text's next label there; ``frames`` (B,) and ``lengths`` (B,): frames and labels of each utterance. Padding is not
    read.
    """
    blank_edges, label_edges = _edges(blanks, labels, frames, lengths)
    batch = len(blanks)
    sums = _path_sums(  # (2B, T + 1, U + 1): paths to a node, and paths from a node seen from the end
        torch.cat([blank_edges, blank_edges.flip(1, 2)]), torch.cat([label_edges, label_edges.flip(1, 2)])
    )
    total = sums[:batch, -1, -1]
    before = sums[:batch, :-1] - total[:, None, None]  # (B, T, U + 1), normalised
    after = sums[batch:].flip(1, 2)  # (B, T + 1, U + 1)
    return _Alignments(
        log_likelihood=total,
        nodes=(before + after[:, :-1]).exp_(),
        blanks=(before + blank_edges).add_(after[:, 1:]).exp_(),
        labels=(before[..., :-1] + label_edges[:, :-1]).add_(after[:, :-1, 1:]).exp_(),
    )


def _edges(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Log-weights of blank edges (B, T, U + 1) and label edges (B, T + 1, U), so that every utterance ends at (T, U).

    From the end (frames, lengths) of a shorter utterance a single path of weight 1 leads on to (T, U): blanks to the
    last frame, then labels. All other edges after the end have weight 0. So ragged batches need no special case.
    """
    batch, time, nodes = blanks.shape
    t = torch.arange(time + 1, device=blanks.device)[None, :, None]
    u = torch.arange(nodes, device=blanks.device)[None, None, :]
    ends, last = frames[:, None, None], lengths[:, None, None]
    impossible = torch.tensor(-torch.inf, dtype=PRECISION, device=blanks.device)
    certain = torch.zeros_like(impossible)

    beyond = torch.where((t[:, :-1] >= ends) & (u == last), certain, impossible)
    blank_edges = torch.where((t[:, :-1] < ends) & (u <= last), blanks.to(PRECISION), beyond)
    label_edges = torch.where((t == time) & (u[..., :-1] >= last), certain, impossible).expand(batch, -1, -1).clone()
    within = (t[:, :-1] < ends) & (u[..., :-1] < last)
    label_edges[:, :-1] = torch.where(within, labels.to(PRECISION), label_edges[:, :-1])
    return blank_edges, label_edges


def _path_sums(blank_edges: Tensor, label_edges: Tensor) -> Tensor:
    """Log of the summed weight (N, T + 1, U + 1) of all paths from (0, 0) to each node.

    ``blank_edges`` (N, T, U + 1) and ``label_edges`` (N, T + 1, U) are log-weights.
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
    sources = sums.as_strided((diagonals, 2, count, width), (step, 1, width + 1, 1)).unbind()
    arriving, by_label, by_blank = edges.unbind(), edges[:, 0].unbind(), edges[:, 1].unbind()
    targets = sums[:, :, 1:].unbind()
    for d in range(1, diagonals):
        arriving[d].add_(sources[d - 1])
        torch.logaddexp(by_label[d], by_blank[d], out=targets[d])
    return sums.as_strided((count, time + 1, width), (width + 1, step, step + 1), 1)


_PIECE = {"cpu": 1 << 16, "cuda": 1 << 25}
"""Logits processed at once: 0.25 MB in float32 fit a core's cache; a graphics processor needs large pieces."""


class _Texts(NamedTuple):
    """Lengths and labels of a batch, which the loss needs in addition to the logits."""

    frames: Tensor
    """Frames of each utterance (B,), 1 to T."""
    lengths: Tensor
    """Labels of each utterance (B,), 0 to U."""
    ids: Tensor
    """Label ids (B, U), int64, on the device of the logits."""
    blank: int


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
    texts = _Texts(frames, lengths, ids, blank)
    with torch.autocast(logits.device.type, enabled=False):
        losses: Tensor = _TransducerLoss.apply(logits, texts)
    return losses


def _checked(log_likelihood: Tensor) -> Tensor:
    """``log_likelihood`` (B,); ``ModelError`` if one is not finite."""
    finite = log_likelihood.isfinite()
    if not bool(finite.all()):
        index = int((~finite).nonzero()[0])
        reason = (
            "no alignment of its text has a probability above 0"
            if log_likelihood[index] == -torch.inf
            else "the joiner's scores are not finite (NaN or infinite); try a lower learning rate"
        )
        count = int((~finite).sum())
        raise ModelError(
            f"the transducer's loss is undefined for {count} of {len(log_likelihood)} utterances of the batch, "
            f"first {index}: {reason}"
        )
    return log_likelihood


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]
    texts: _Texts


class _TransducerLoss(torch.autograd.Function):
    """Losses (B,) whose gradient is computed from the posterior probabilities of the forward pass."""

    @staticmethod
    def forward(context: _Context, logits: Tensor, texts: _Texts) -> Tensor:
        blanks, labels = _edge_log_probabilities(logits, texts)
        found = _alignments(blanks, labels, texts.frames, texts.lengths)
        context.save_for_backward(logits, *(part.to(blanks.dtype) for part in found[1:]))
        context.texts = texts
        return -_checked(found.log_likelihood).to(blanks.dtype)

    @staticmethod
    @once_differentiable
    def backward(context: _Context, weights: Tensor) -> tuple[Tensor, None]:
        logits, nodes, blanks, labels = context.saved_tensors
        return _gradient(weights, logits, nodes, blanks, labels, context.texts), None


def _edge_log_probabilities(logits: Tensor, texts: _Texts) -> tuple[Tensor, Tensor]:
    """Log-probabilities of a blank (B, T, U + 1) and of the next label (B, T, U) at each node; 0 in the padding."""
    batch, time, width, _ = logits.shape
    arithmetic = torch.promote_types(logits.dtype, torch.float32)
    blanks = torch.zeros(batch, time, width, dtype=arithmetic, device=logits.device)
    labels = torch.zeros(batch, time, width - 1, dtype=arithmetic, device=logits.device)
    for index, times, rows, ids in _pieces(logits, texts):
        scores = torch.log_softmax(logits[index, times, rows], -1, dtype=arithmetic)  # (t, u, V)
        blanks[index, times, rows] = scores[..., texts.blank]
        following = scores[:, : len(ids)].gather(2, ids.expand(len(scores), -1)[..., None])[..., 0]
        labels[index, times, rows.start : rows.start + len(ids)] = following
    return blanks, labels


def _gradient(weights: Tensor, logits: Tensor, nodes: Tensor, blanks: Tensor, labels: Tensor, texts: _Texts) -> Tensor:
    """Gradient (B, T, U + 1, V) of the sum of ``weights`` (B,) * losses.

    d loss / d logit k at a node = P(node) * softmax(logits)_k - P(blank edge) [k = blank] - P(label edge) [k = label],
    with posterior probabilities P.
    """
    gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
    for index, (time, length) in enumerate(zip(texts.frames.tolist(), texts.lengths.tolist(), strict=True)):
        gradient[index, time:] = 0
        gradient[index, :time, length + 1 :] = 0
    scale = weights.to(nodes.dtype)[:, None, None]
    nodes, blanks, labels = nodes * scale, blanks * scale, labels * scale
    for index, times, rows, ids in _pieces(logits, texts):
        piece = torch.softmax(logits[index, times, rows], -1, dtype=nodes.dtype)  # (t, u, V)
        piece.mul_(nodes[index, times, rows, None])
        piece[..., texts.blank] -= blanks[index, times, rows]
        leaving = labels[index, times, rows.start : rows.start + len(ids)]
        piece[:, : len(ids)].scatter_add_(2, ids.expand(len(piece), -1)[..., None], leaving.neg()[..., None])
        gradient[index, times, rows] = piece
    return gradient


def _pieces(logits: Tensor, texts: _Texts) -> Iterator[tuple[int, slice, slice, Tensor]]:
    """Utterance, frames, nodes and next labels of each piece of the logits; together they are all but the padding."""
    size = _PIECE.get(logits.device.type, _PIECE["cpu"])
    symbols = logits.shape[-1]
    for index, (time, length) in enumerate(zip(texts.frames.tolist(), texts.lengths.tolist(), strict=True)):
        width = length + 1
        nodes_at_once = min(width, max(1, size // symbols))
        frames_at_once = max(1, size // (symbols * nodes_at_once)) if nodes_at_once == width else 1
        for start in range(0, time, frames_at_once):
            for first in range(0, width, nodes_at_once):
                times = slice(start, min(time, start + frames_at_once))
                rows = slice(first, min(width, first + nodes_at_once))
                yield index, times, rows, texts.ids[index, first : min(rows.stop, length)]
