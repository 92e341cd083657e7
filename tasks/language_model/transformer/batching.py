"""Sentences to windows, and windows to batches of like length, in an order drawn anew for every epoch.

A sentence is one window, or several where it is longer than the model's positions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.vocabulary import PADDING_ID


@dataclass(frozen=True)
class Windows:
    """Stretches of sentences that are read at once; every target of the text is scored in exactly one of them."""

    first: np.ndarray
    """Index into the text's ids of each window's first input (int64)."""
    length: np.ndarray
    """Inputs of each window (int64); each has a target behind it."""
    context: np.ndarray
    """How many of its first targets are context only, because an earlier window scored them (int64)."""
    sentence: np.ndarray
    """Index of the sentence (int64)."""

    def __len__(self) -> int:
        return len(self.first)


def divide(text: EncodedText, maximum_tokens: int, overlap: int = 0) -> Windows:
    """One window a sentence; a sentence with more than ``maximum_tokens`` targets gets several.

    Neighbouring windows of a sentence share ``overlap`` positions: the later window reads them as context and scores
    what comes after. Nothing is cut off, and no window reaches across two sentences.
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


def overlap_of(maximum_tokens: int) -> int:
    """Positions that a later window of a long sentence reads as context when it is scored: half a window."""
    return maximum_tokens // 2


POOL_BATCHES = 32
"""Sentences are sorted by length within pools of so many batches: little padding, and still a mixture in each epoch."""


@dataclass(frozen=True)
class Batch:
    """Windows side by side, padded on the right, and the positions that count."""

    tokens: torch.Tensor
    """Inputs (B, T), int64."""
    positions: torch.Tensor
    """Indices (N,) into B x T of the positions whose next token is to be predicted, int64."""
    targets: torch.Tensor
    """The tokens to predict there (N,), int64."""
    rows: torch.Tensor
    """Which of the chosen windows (from 0) each of them belongs to (N,), int64."""
    places: torch.Tensor | None = None
    """Place of each input in its window (B, T), int64; ``None`` where a row is one window."""
    segments: torch.Tensor | None = None
    """Which window of its row each input belongs to (B, T), int64, -1 for padding; ``None`` where a row is one."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device; a GPU that still computes is not waited for."""
        to_gpu = torch.device(device).type == "cuda"
        moved: dict[str, Any] = {
            name: value if value is None else (value.pin_memory() if to_gpu else value).to(device, non_blocking=True)
            for name, value in vars(self).items()
        }
        return Batch(**moved)


def make_batch(text: EncodedText, is_target: np.ndarray, windows: Windows, chosen: np.ndarray) -> Batch:
    """Gather the chosen windows; ``is_target`` is ``text.is_target()``."""
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
    """Index into the text's ids of each target (N,) of a batch whose windows begin at ``first`` (B,)."""
    columns = batch.positions.numpy() % batch.tokens.shape[1]
    places: np.ndarray = first[batch.rows.numpy()] + columns + 1
    return places


def _cut(order: np.ndarray, length: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Consecutive windows of ``order`` in batches of at most ``batch_tokens`` targets, or of one longer window."""
    batches, begin, total = [], 0, 0
    for index, targets in enumerate(length[order].tolist()):
        if total and total + targets > batch_tokens:
            batches.append(order[begin:index])
            begin, total = index, 0
        total += targets
    return [*batches, order[begin:]] if begin < len(order) else batches


def batches_by_length(windows: Windows, batch_tokens: int) -> list[np.ndarray]:
    """Every window once, the longest first: batches for scoring, as indices of windows."""
    return _cut(np.argsort(-windows.length, kind="stable"), windows.length, batch_tokens)


def shuffled_batches(windows: Windows, batch_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Every window once, in an order that is a function of seed and epoch: batches for training."""
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(windows))
    mean = max(1.0, float(windows.length.mean()))
    pool = max(1, round(POOL_BATCHES * batch_tokens / mean))
    batches: list[np.ndarray] = []
    for begin in range(0, len(order), pool):
        part = order[begin : begin + pool]
        batches += _cut(part[np.argsort(windows.length[part], kind="stable")], windows.length, batch_tokens)
    return [batches[index] for index in generator.permutation(len(batches))]


def epoch_order(windows: Windows, batch_tokens: int, seed: int, epoch: int, share: float = 1.0) -> list[np.ndarray]:
    """The batches of one epoch as indices of windows: at least one; ``share`` below 1 stops early. Each has a target:
    every sentence's end is one."""
    order = shuffled_batches(windows, batch_tokens, seed, epoch)
    return order[: max(1, round(share * len(order)))]
