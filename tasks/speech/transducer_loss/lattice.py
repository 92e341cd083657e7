"""The alignments of a transducer, summed: forward and backward variables over the lattice of frames and labels.

A node (t, u) says that t frames are consumed and u labels are written. From it a blank leads to (t + 1, u), and label
u + 1 leads to (t, u + 1). An alignment is a path from (0, 0) to (T, U). Source: Graves, "Sequence Transduction with
Recurrent Neural Networks" (2012), section 2.4, equations 16-20.

All nodes of an anti-diagonal t + u = d depend on diagonal d - 1 only, so each diagonal is computed at once for all
utterances and in both directions: T + U small steps in all, none of them a loop over nodes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

PRECISION = torch.float64
"""A path's log-probability is in the thousands, where float32 has a resolution of 1e-4. The lattice is small beside the
logits, so double precision costs nearly nothing."""


@dataclass(frozen=True)
class Alignments:
    """Posterior probabilities of nodes and edges, given the text; padding holds numbers without meaning."""

    log_likelihood: Tensor
    """(B,), in nats, ``PRECISION``."""
    nodes: Tensor
    """(B, T, U + 1): probability that the alignment passes through node (t, u)."""
    blanks: Tensor
    """(B, T, U + 1): probability that it leaves node (t, u) by a blank."""
    labels: Tensor
    """(B, T, U): probability that it leaves node (t, u) by label u + 1."""


def log_likelihood(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> Tensor:
    """Log-probability (B,) of each text in nats, in ``PRECISION``; arguments as for ``alignments``."""
    blank_edges, label_edges = _edges(blanks, labels, frames, lengths)
    return _path_sums(blank_edges, label_edges)[:, -1, -1]


def alignments(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> Alignments:
    """Sum over all alignments, and the share of every node and edge in the sum.

    ``blanks`` (B, T, U + 1): log-probability of a blank at each node; ``labels`` (B, T, U): log-probability of the
    text's next label there; ``frames`` (B,) and ``lengths`` (B,): frames and labels of each utterance. What lies
    beyond them is not read.
    """
    blank_edges, label_edges = _edges(blanks, labels, frames, lengths)
    batch = len(blanks)
    sums = _path_sums(  # (2B, T + 1, U + 1): paths to a node, and paths from a node seen from the end
        torch.cat([blank_edges, blank_edges.flip(1, 2)]), torch.cat([label_edges, label_edges.flip(1, 2)])
    )
    total = sums[:batch, -1, -1]
    before = sums[:batch, :-1] - total[:, None, None]  # (B, T, U + 1), normalised
    after = sums[batch:].flip(1, 2)  # (B, T + 1, U + 1)
    return Alignments(
        log_likelihood=total,
        nodes=(before + after[:, :-1]).exp_(),
        blanks=(before + blank_edges).add_(after[:, 1:]).exp_(),
        labels=(before[..., :-1] + label_edges[:, :-1]).add_(after[:, :-1, 1:]).exp_(),
    )


def _edges(blanks: Tensor, labels: Tensor, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Log-weights of blank edges (B, T, U + 1) and label edges (B, T + 1, U), so that every utterance ends at (T, U).

    From the end (frames, lengths) of a shorter utterance a single path of weight 1 leads on to (T, U): blanks to the
    last frame, then labels. All other edges beyond the end have weight 0. So ragged batches need no special case.
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
    # Column 0 stands for "one label fewer than none".
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
