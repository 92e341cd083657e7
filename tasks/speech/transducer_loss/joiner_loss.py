"""The transducer's loss straight from encoder and predictor, without the joiner's tensors of all frames and labels.

The joiner adds every frame's encoding to every label's, (B, T, U + 1, D), applies its activation, and its linear layer
makes logits (B, T, U + 1, V) of them. As modules with a loss behind them, training keeps or passes through several
tensors of the first size and two of the second. Here the logits are there once, without padding, and each piece of them
makes room as soon as its gradient is used. What has D columns exists for a run of nodes at a time and is computed
twice, which costs little: the products with the linear layer are not repeated.

Gradients are computed in the forward pass, while the logits are there; the backward pass only scales them.
"""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from tasks.errors import ModelError
from tasks.speech.transducer_loss.arguments import LossArguments, checked_arguments, checked_log_likelihood
from tasks.speech.transducer_loss.lattice import alignments, log_likelihood

Activation = Literal["relu", "tanh"]
_PIECE = {"cpu": 1 << 18, "cuda": 1 << 25}
"""Elements of the wider of joint encodings and logits that are worked on at once."""
_FEWEST_NODES = 1024
"""Fewer at once would make the products with the linear layer slow, which pack its weight each time."""


def transducer_loss_from_joiner(
    encodings: Tensor,
    predictions: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = -1,
    *,
    activation: Activation = "relu",
    reduction: Literal["mean", "sum"] = "mean",
    arithmetic: torch.dtype | None = None,
) -> Tensor:
    """``transducer_loss`` of the logits ``activation(encoding + prediction) @ weight.T + bias``, in nats.

    ``encodings`` (B, T, D) and ``predictions`` (B, U + 1, D): what goes into the joiner of ``torchaudio.models.RNNT``;
    ``weight`` (V, D) and ``bias`` (V,): its ``joiner.linear``; ``activation``: that of its ``joiner``. The other
    arguments and the errors are those of ``transducer_loss``. ``arithmetic``: type of the joint encodings, of the three
    products and of the logits (default: that of ``weight``); everything else is float32 or better. Differentiable once
    in the first four arguments.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction {reduction!r} is unknown; there are mean and sum")
    if activation not in ("relu", "tanh"):
        raise ValueError(f"activation {activation!r} is unknown; there are relu and tanh")
    shape = _checked_shape(encodings, predictions, weight, bias)
    given = checked_arguments(shape, targets, logit_lengths, target_lengths, blank, device=encodings.device)
    with torch.autocast(encodings.device.type, enabled=False):
        total = _JoinerLoss.apply(
            encodings, predictions, weight, bias, given, activation == "tanh", arithmetic or weight.dtype
        )
    return total / shape[0] if reduction == "mean" else total


def _checked_shape(encodings: Tensor, predictions: Tensor, weight: Tensor, bias: Tensor) -> tuple[int, int, int, int]:
    """The shape (B, T, U + 1, V) of the logits; ``ModelError`` where the tensors do not fit each other."""
    fits = (
        encodings.dim() == predictions.dim() == 3
        and weight.dim() == 2
        and bias.shape == weight.shape[:1]
        and encodings.shape[2] == predictions.shape[2] == weight.shape[1]
        and len(encodings) == len(predictions)
        and 0 not in (*encodings.shape, *predictions.shape, *weight.shape)
    )
    if not fits:
        raise ModelError(
            "the transducer's loss needs encodings (B, T, D), predictions (B, U + 1, D), weight (V, D) and bias (V,), "
            f"not {', '.join(repr(tuple(each.shape)) for each in (encodings, predictions, weight, bias))}"
        )
    return len(encodings), encodings.shape[1], predictions.shape[1], len(weight)


class _JoinerLoss(torch.autograd.Function):
    """Sum of the losses; gradients for encodings, predictions, weight and bias."""

    @staticmethod
    def forward(
        context: Any,
        encodings: Tensor,
        predictions: Tensor,
        weight: Tensor,
        bias: Tensor,
        given: LossArguments,
        is_tanh: bool,
        arithmetic: torch.dtype,
    ) -> Tensor:
        joiner = _Joiner(encodings, predictions, weight, bias, given, is_tanh, arithmetic)
        needed = any(context.needs_input_grad[:4])
        logits, blanks, labels = joiner.edge_log_probabilities(keep=needed)
        limits = [torch.tensor(each, device=encodings.device) for each in (given.frames, given.lengths)]
        if not needed:
            return -checked_log_likelihood(log_likelihood(blanks, labels, *limits)).sum().to(joiner.precision)
        found = alignments(blanks, labels, *limits)
        total = -checked_log_likelihood(found.log_likelihood).sum().to(joiner.precision)
        posteriors = [part.to(joiner.precision) for part in (found.nodes, found.blanks, found.labels)]
        context.save_for_backward(*joiner.gradients(logits, *posteriors))
        return total

    @staticmethod
    @once_differentiable
    def backward(context: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        # Not in place: the same graph may be walked again.
        return *[(each * scale).to(each.dtype) for each in context.saved_tensors], None, None, None


class _Joiner:
    """The joiner of one batch over its nodes, which are all frames and labels that are no padding, piece by piece."""

    def __init__(
        self,
        encodings: Tensor,
        predictions: Tensor,
        weight: Tensor,
        bias: Tensor,
        given: LossArguments,
        is_tanh: bool,
        arithmetic: torch.dtype,
    ):
        self.encodings, self.predictions, self.given, self.is_tanh = encodings, predictions, given, is_tanh
        self.weight, self.bias, self.arithmetic = weight, bias, arithmetic
        self.rounded_encodings = encodings.flatten(0, 1).to(arithmetic)  # (B * T, D)
        self.rounded_predictions = predictions.flatten(0, 1).to(arithmetic)  # (B * (U + 1), D)
        self.rounded_weight, self.rounded_bias = weight.to(arithmetic), bias.to(arithmetic)
        self.precision = torch.promote_types(weight.dtype, torch.float32)
        device = encodings.device
        (batch, time, _), width = encodings.shape, predictions.shape[1]
        t, u = torch.arange(time, device=device)[:, None], torch.arange(width, device=device)
        ends = torch.tensor(given.frames, device=device)[:, None, None]
        last = torch.tensor(given.lengths, device=device)[:, None, None]
        self.nodes = ((t < ends) & (u <= last)).flatten().nonzero().squeeze(1)  # (N,) of B * T * (U + 1)
        utterances = self.nodes // (time * width)
        columns = self.nodes % width
        self.frame_rows = self.nodes // width  # (N,) of B * T
        self.label_rows = utterances * width + columns  # (N,) of B * (U + 1)
        # Where no label is left any id will do: its probability is not read, and its posterior probability is 0.
        ids = functional.pad(given.ids, (0, 1), value=given.blank)  # (B, U + 1)
        self.next_ids = ids.flatten()[self.label_rows]  # (N,)
        self.has_label = columns < last.flatten()[utterances]  # (N,)
        self.shape = batch, time, width

    def _pieces(self) -> Iterator[slice]:
        """Nodes in runs of one size: the matrix products compile and pack anew for every other size."""
        size = _PIECE.get(self.encodings.device.type, _PIECE["cpu"])
        rows = max(_FEWEST_NODES, size // max(self.weight.shape))
        for start in range(0, len(self.nodes), rows):
            yield slice(start, min(len(self.nodes), start + rows))

    def _joint(self, piece: slice) -> Tensor:
        """Activations (n, D) of a piece, in ``arithmetic``."""
        joint = self.rounded_encodings.index_select(0, self.frame_rows[piece])
        joint += self.rounded_predictions.index_select(0, self.label_rows[piece])
        return joint.tanh_() if self.is_tanh else joint.relu_()

    def _before_activation(self, gradient: Tensor, joint: Tensor) -> Tensor:
        """Gradient of the activation's input, from that of its output ``joint``."""
        if self.is_tanh:
            return torch.ops.aten.tanh_backward(gradient, joint)
        return torch.ops.aten.threshold_backward(gradient, joint, 0)

    def edge_log_probabilities(self, *, keep: bool) -> tuple[list[Tensor], Tensor, Tensor]:
        """Logits (n, V) of each piece, where ``keep``, and log-probabilities of a blank and of the next label."""
        blanks = self.encodings.new_zeros(self.shape, dtype=self.precision)  # (B, T, U + 1)
        labels = torch.zeros_like(blanks)
        kept = []
        for piece in self._pieces():
            logits = functional.linear(self._joint(piece), self.rounded_weight, self.rounded_bias)
            scores = torch.log_softmax(logits, -1, dtype=self.precision)  # (n, V)
            blanks.view(-1)[self.nodes[piece]] = scores[:, self.given.blank]
            labels.view(-1)[self.nodes[piece]] = scores.gather(1, self.next_ids[piece, None]).squeeze(1)
            if keep:
                kept.append(logits)
        return kept, blanks, labels[..., :-1]

    def gradients(
        self, logits: list[Tensor], nodes: Tensor, blanks: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of the summed losses for encodings, predictions, weight and bias; empties ``logits``."""
        for_encodings = torch.zeros_like(self.encodings, dtype=self.precision)
        for_predictions = torch.zeros_like(self.predictions, dtype=self.precision)
        for_weight = torch.zeros_like(self.weight, dtype=self.precision)
        for_bias = torch.zeros_like(self.bias, dtype=self.precision)
        shares, by_blank = nodes.flatten()[self.nodes], blanks.flatten()[self.nodes]  # (N,)
        by_label = functional.pad(labels, (0, 1)).flatten()[self.nodes] * self.has_label
        logits.reverse()
        for piece in self._pieces():
            slopes = torch.softmax(logits.pop(), -1, dtype=self.precision).mul_(shares[piece, None])  # (n, V)
            slopes[:, self.given.blank] -= by_blank[piece]
            slopes.scatter_add_(1, self.next_ids[piece, None], by_label[piece, None].neg())
            for_bias += slopes.sum(0)
            slopes = slopes.to(self.arithmetic)
            joint = self._joint(piece)  # (n, D)
            for_weight += slopes.t() @ joint
            inner = slopes @ self.rounded_weight  # (n, D)
            inner = self._before_activation(inner, joint).to(self.precision)
            for_encodings.flatten(0, 1).index_add_(0, self.frame_rows[piece], inner)
            for_predictions.flatten(0, 1).index_add_(0, self.label_rows[piece], inner)
        return (
            for_encodings.to(self.encodings.dtype),
            for_predictions.to(self.predictions.dtype),
            for_weight.to(self.weight.dtype),
            for_bias.to(self.bias.dtype),
        )
