"""The transducer's loss in PyTorch alone: the same as ``torchaudio.functional.rnnt_loss``, without a compiled kernel.

The loss is minus the log-probability of a text given the joiner's scores, summed over all alignments. Source: Graves,
"Sequence Transduction with Recurrent Neural Networks" (2012), section 2.4. A node (t, u) of the lattice means that t
frames are consumed and u labels are written. From it a blank leads to (t + 1, u), and label u + 1 leads to (t, u + 1).
An alignment is a path from (0, 0) to (T, U). All nodes of a diagonal t + u = d depend on diagonal d - 1 only, so each
diagonal is computed at once: T + U steps, no loop over nodes. PyTorch derives the gradient.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

_NEVER = -1e30
"""Log-weight of an edge that does not exist. Minus infinity would make gradients NaN."""


def transducer_loss(logits: Tensor, targets: Tensor, frames: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Minus the log-probability (B,) of each text in nats, summed over all alignments, float64.

    ``logits`` (B, T, U + 1, V): the joiner's scores; ``targets`` (B, U): label ids, none of them ``blank``; ``frames``
    (B,), 1 to T, and ``lengths`` (B,), 0 to U: frames and labels of each utterance. Padding may have any finite
    value and gets gradient 0. The lattice is float64: log-probabilities reach thousands, where float32 resolves 1e-4.
    """
    frames, lengths, targets = (each.long().to(logits.device) for each in (frames, lengths, targets))
    batch, time, width, _ = logits.shape
    t = torch.arange(time, device=logits.device)[:, None]
    u = torch.arange(width, device=logits.device)
    last = lengths[:, None, None]
    padding = (t >= frames[:, None, None]) | (u > last)  # (B, T, U + 1)
    following = torch.nn.functional.pad(targets.clamp(min=0), (0, 1))[:, None].expand(-1, time, -1)  # (B, T, U + 1)
    chosen = torch.stack([torch.full_like(following, blank), following], dim=3)
    with torch.autocast(logits.device.type, enabled=False):
        edges = _EdgeScores.apply(logits.to(torch.promote_types(logits.dtype, torch.float32)), chosen).double()
        edges = edges.masked_fill(torch.stack([padding, padding | (u == last)], dim=3), _NEVER).clamp(min=_NEVER)
        log_likelihood = _path_sums(edges)[frames + lengths, torch.arange(batch, device=logits.device), lengths]
    return -log_likelihood


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]


class _EdgeScores(torch.autograd.Function):
    """Log-probabilities (B, T, U + 1, 2) of the chosen symbols; as by log_softmax, with one tensor as large as the
    logits, their gradient."""

    @staticmethod
    def forward(context: _Context, logits: Tensor, chosen: Tensor) -> Tensor:
        norms = logits.logsumexp(3, keepdim=True)
        context.save_for_backward(logits, norms, chosen)
        return logits.gather(3, chosen) - norms

    @staticmethod
    @once_differentiable
    def backward(context: _Context, gradient: Tensor) -> tuple[Tensor, None]:
        logits, norms, chosen = context.saved_tensors
        probabilities = (logits - norms).exp_()
        return probabilities.mul_(-gradient.sum(3, keepdim=True)).scatter_add_(3, chosen, gradient), None


def _path_sums(edges: Tensor) -> Tensor:
    """Log of the summed weight (D, B, U + 1) of all paths from (0, 0) to node (d - u, u) (equations 16-20).

    ``edges`` (B, T, U + 1, 2): log-weights of the blank and of the label that leave each node.
    """
    batch, time, width, _ = edges.shape
    u = torch.arange(width, device=edges.device)
    t = torch.arange(time + width - 1, device=edges.device)[:, None] - u  # (D - 1, U + 1)
    outside = ((t < 0) | (t >= time))[..., None]
    by_diagonal = edges[:, t.clamp(0, time - 1), u].masked_fill(outside, _NEVER)  # (B, D - 1, U + 1, 2)
    sums = [edges.new_full((batch, width), _NEVER).index_fill(1, u[:1], 0.0)]
    for leaving in by_diagonal.unbind(1):
        by_blank, by_label = (sums[-1][..., None] + leaving).unbind(2)
        by_label = torch.nn.functional.pad(by_label[:, :-1], (1, 0), value=_NEVER)
        sums.append(torch.logaddexp(by_blank, by_label))
    return torch.stack(sums)
