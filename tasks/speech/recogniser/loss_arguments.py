"""What the losses of this package can be asked to compute, and the messages for what they cannot."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.errors import ModelError

_FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True)
class LossArguments:
    """What a loss over a batch needs beside the logits, checked."""

    frames: list[int]
    """Frames of each utterance, 1 to T."""
    lengths: list[int]
    """Labels of each utterance, 0 to U."""
    ids: Tensor
    """(B, U), int64: label ids, 0 in the padding, on the device of the logits."""
    blank: int
    """Id of the blank, from 0."""


def checked_arguments(
    shape: tuple[int, int, int, int],
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    device: torch.device,
) -> LossArguments:
    """The arguments of a loss over logits of ``shape`` (B, T, U + 1, V); ``ModelError`` where they do not fit."""
    _check_shapes(shape, targets, logit_lengths, target_lengths)
    _, time, width, symbols = shape
    blank = _checked_blank(symbols, blank)
    frames, lengths = logit_lengths.tolist(), target_lengths.tolist()
    _check_lengths(frames, lengths, time, width)
    ids = _checked_targets(targets, lengths, symbols, blank).to(device)
    return LossArguments(frames, lengths, ids, blank)


def checked_logits(logits: Tensor) -> tuple[int, int, int, int]:
    """The shape (B, T, U + 1, V) of logits; ``ModelError`` where they cannot be a joiner's scores."""
    if logits.dtype not in _FLOATING:
        raise ModelError(f"the transducer's loss needs logits of a floating type, not {logits.dtype!r}")
    if logits.dim() != 4 or 0 in logits.shape:
        raise ModelError(
            f"the transducer's loss needs logits of shape (utterances, frames, labels + 1, symbols), all at least 1, "
            f"not {tuple(logits.shape)!r}"
        )
    batch, time, width, symbols = logits.shape
    return batch, time, width, symbols


def _check_shapes(
    shape: tuple[int, int, int, int], targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor
) -> None:
    batch, _, width, _ = shape
    expected = {"targets": (batch, width - 1), "logit_lengths": (batch,), "target_lengths": (batch,)}
    given = {"targets": targets, "logit_lengths": logit_lengths, "target_lengths": target_lengths}
    for name, size in expected.items():
        if tuple(given[name].shape) != size or given[name].dtype not in _INTEGERS:
            raise ModelError(
                f"the transducer's loss: with logits of shape {shape!r}, {name} must be integers of shape {size!r}, "
                f"not {given[name].dtype!r} of shape {tuple(given[name].shape)!r}"
            )


def _checked_blank(symbols: int, blank: int) -> int:
    """The id of the blank, counted from 0; ``ModelError`` where it is none of ``symbols`` symbols."""
    if not -symbols <= blank < symbols:
        raise ModelError(f"the blank's id {blank!r} is not allowed; the joiner has the symbols 0 to {symbols - 1}")
    return blank % symbols


def _check_lengths(frames: list[int], lengths: list[int], time: int, width: int) -> None:
    """Raise ``ModelError`` where an utterance has no frame, or more frames or labels than the logits have room for."""
    for index, (count, length) in enumerate(zip(frames, lengths, strict=True)):
        if not 1 <= count <= time:
            raise ModelError(
                f"utterance {index} of the batch has {count!r} frames; a transducer needs at least 1, and the logits "
                f"have {time}. Leave recordings out that are too short for one frame"
            )
        if not 0 <= length < width:
            raise ModelError(
                f"utterance {index} of the batch has {length!r} labels; the logits have room for 0 to {width - 1}"
            )


def _checked_targets(targets: Tensor, lengths: list[int], symbols: int, blank: int) -> Tensor:
    """Label ids (B, U) as int64 with 0 as padding; ``ModelError`` where a label is no symbol or is the blank."""
    columns = torch.arange(targets.shape[1], device=targets.device)
    counts = torch.tensor(lengths, device=targets.device)[:, None]
    ids = targets.long().masked_fill(columns >= counts, 0)
    wrong = ((ids < 0) | (ids >= symbols) | (ids == blank)) & (columns < counts)
    if bool(wrong.any()):
        index, column = wrong.nonzero()[0].tolist()
        raise ModelError(
            f"label {column} of utterance {index} of the batch is {ids[index, column].item()!r}; the joiner has the "
            f"symbols 0 to {symbols - 1}, of which {blank} is the blank and no label. Are these units the model's own?"
        )
    return ids


def checked_log_likelihood(log_likelihood: Tensor) -> Tensor:
    """``log_likelihood`` (B,); ``ModelError`` where one is not finite."""
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
