"""Windows of sentences, and batches of windows of similar length, in a new order for every epoch.

A sentence is one window, or several where it is longer than the model's positions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.vocabulary import PADDING_ID


@dataclass(frozen=True)
class Windows:
    """Stretches of sentences that are read at once; every target of the text is scored in exactly one window."""

    first: np.ndarray
    """Index into the text's ids of each window's first input (int64)."""
    length: np.ndarray
    """Number of inputs of each window (int64); each input is followed by its target."""
    context: np.ndarray
    """Number of its first targets that are context only, since an earlier window scores them (int64)."""
    sentence: np.ndarray
    """Sentence index of each window (int64)."""

    def __len__(self) -> int:
        return len(self.first)


def divide(text: EncodedText, maximum_tokens: int, overlap: int = 0) -> Windows:
    """Divide a text into one window a sentence, or several for more than ``maximum_tokens`` targets.

    Neighbouring windows of a sentence share ``overlap`` positions: the later window reads them as context and scores
    the targets after them. No target is lost, and no window crosses a sentence boundary.
    """
    targets = np.diff(text.offsets) - 1
    stride = maximum_tokens - overlap
    counts = 1 + np.maximum(0, -(-(targets - maximum_tokens) // stride))
    sentence = np.repeat(np.arange(len(targets)), counts)
    rank = np.arange(len(sentence)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = rank * stride
    return Windows(
        first=text.offsets[sentence] + start,
        length=np.minimum(maximum_tokens, targets[sentence] - start),
        context=np.where(rank > 0, overlap, 0),
        sentence=sentence,
    )


POOL_BATCHES = 32
"""Batches in a pool within which sentences are sorted by length: padding is low, and each epoch is still mixed."""


@dataclass(frozen=True)
class Batch:
    """Windows in rows of equal length, padded on the right, and the positions of their targets."""

    tokens: torch.Tensor
    """Inputs (B, T), int64."""
    positions: torch.Tensor
    """Indices (N,) into B x T of the positions whose next token is a target, int64."""
    targets: torch.Tensor
    """Target of each position (N,), int64."""
    rows: torch.Tensor
    """Window of each position, counted from 0 among the chosen ones (N,), int64."""
    places: torch.Tensor | None = None
    """Position of each input in its window (B, T), int64; ``None`` where a row is one window."""
    segments: torch.Tensor | None = None
    """Window of each input within its row (B, T), int64, -1 for padding; ``None`` where a row is one window."""

    def to(self, device: torch.device | str) -> "Batch":
        """A copy on another device; the copy to a GPU is asynchronous."""
        to_gpu = torch.device(device).type == "cuda"
        moved: dict[str, Any] = {
            name: value if value is None else (value.pin_memory() if to_gpu else value).to(device, non_blocking=True)
            for name, value in vars(self).items()
        }
        return Batch(**moved)


def make_batch(text: EncodedText, is_target: np.ndarray, windows: Windows, chosen: np.ndarray) -> Batch:
    """Gather the chosen windows into a batch; ``is_target`` is ``text.is_target()``."""
    length = windows.length[chosen][:, None]  # (B, 1)
    steps = np.arange(int(length.max()))[None, :]  # (1, T)
    inside = steps < length  # (B, T)
    index = np.where(inside, windows.first[chosen][:, None] + steps, 0)  # (B, T)
    counted = inside & is_target[index + 1] & (steps >= windows.context[chosen][:, None])
    rows, columns = np.nonzero(counted)
    return Batch(
        tokens=torch.from_numpy(np.where(inside, text.tokens[index], PADDING_ID).astype(np.int64)),
        positions=torch.from_numpy(rows * steps.shape[1] + columns),
        targets=torch.from_numpy(text.tokens[index[rows, columns] + 1].astype(np.int64)),
        rows=torch.from_numpy(rows),
    )


def target_places(batch: Batch, first: np.ndarray) -> np.ndarray:
    """The index into the text's ids of each target (N,) of a batch whose windows start at ``first`` (B,)."""
    columns = batch.positions.numpy() % batch.tokens.shape[1]
    places: np.ndarray = first[batch.rows.numpy()] + columns + 1
    return places


def cut(order: np.ndarray, length: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Divide ``order`` into batches of at most ``batch_tokens`` targets, or of one longer window."""
    batches, begin, total = [], 0, 0
    for index, targets in enumerate(length[order].tolist()):
        if total and total + targets > batch_tokens:
            batches.append(order[begin:index])
            begin, total = index, 0
        total += targets
    return [*batches, order[begin:]] if begin < len(order) else batches


def batches_by_length(windows: Windows, batch_tokens: int) -> list[np.ndarray]:
    """Divide all windows, the longest first, into batches for scoring, as indices of windows."""
    return cut(np.argsort(-windows.length, kind="stable"), windows.length, batch_tokens)


def shuffled_batches(windows: Windows, batch_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Divide all windows into batches for training, in an order that depends on seed and epoch."""
    generator = np.random.default_rng([seed, epoch])
    batches: list[np.ndarray] = []
    for part in pools(windows, batch_tokens, generator):
        batches += cut(part[np.argsort(windows.length[part], kind="stable")], windows.length, batch_tokens)
    return [batches[index] for index in generator.permutation(len(batches))]


def pools(windows: Windows, batch_tokens: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """All windows in a random order, divided into pools of ``POOL_BATCHES`` batches."""
    order = generator.permutation(len(windows))
    mean = max(1.0, float(windows.length.mean()))
    pool = max(1, round(POOL_BATCHES * batch_tokens / mean))
    return (order[begin : begin + pool] for begin in range(0, len(order), pool))


def epoch_order(windows: Windows, batch_tokens: int, seed: int, epoch: int, share: float = 1.0) -> list[np.ndarray]:
    """The batches of one epoch as indices of windows, at least one; ``share`` below 1 stops early. Each batch
    has a target, since every sentence end is one."""
    order = shuffled_batches(windows, batch_tokens, seed, epoch)
    return order[: max(1, round(share * len(order)))]
