"""Which batches a training run is made of, over all epochs, and which part of each this process computes.

The batches of an epoch are a function of text, settings, seed and epoch alone. However many ranks there are and in
however many parts a batch is accumulated, an optimiser step has the same targets.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.language_model.transformer.batching import (
    POOL_BATCHES,
    Batch,
    Windows,
    batches_by_length,
    divide,
    epoch_order,
    make_batch,
)
from tasks.language_model.vocabulary import PADDING_ID
from tasks.training.ranks.plan import RankPlan


def pack(chosen: np.ndarray, length: np.ndarray, row_length: int) -> list[np.ndarray]:
    """Lay windows into rows of at most ``row_length`` inputs: the longest first, each where the least room is left.

    Every chosen window is in exactly one row (best-fit decreasing).
    """
    rows: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(row_length + 1)]  # rows by the inputs that still fit in
    order = chosen[np.argsort(-length[chosen], kind="stable")]
    for window, inputs in zip(order.tolist(), length[order].tolist(), strict=True):
        room = next((room for room in range(inputs, row_length + 1) if with_room[room]), None)
        if room is None:
            room = row_length
            with_room[room].append(len(rows))
            rows.append([])
        row = with_room[room].pop()
        rows[row].append(window)
        with_room[room - inputs].append(row)
    return [np.array(row) for row in rows]


def packed_batches(
    windows: Windows, row_length: int, batch_tokens: int, seed: int, epoch: int
) -> list[list[np.ndarray]]:
    """Every window once, in batches of rows, in an order that is a function of seed and epoch.

    A batch has at most ``batch_tokens`` inputs, or is one longer row.
    """
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(windows))
    pool = max(1, round(POOL_BATCHES * batch_tokens / max(1.0, float(windows.length.mean()))))
    batches: list[list[np.ndarray]] = []
    for begin in range(0, len(order), pool):
        rows = pack(order[begin : begin + pool], windows.length, row_length)
        batch: list[np.ndarray] = []
        total = 0
        for index in generator.permutation(len(rows)):
            inputs = int(windows.length[rows[index]].sum())
            if batch and total + inputs > batch_tokens:
                batches.append(batch)
                batch, total = [], 0
            batch.append(rows[index])
            total += inputs
        batches.append(batch)
    return [batches[index] for index in generator.permutation(len(batches))]


def make_packed_batch(text: EncodedText, is_target: np.ndarray, windows: Windows, rows: Sequence[np.ndarray]) -> Batch:
    """Gather rows of windows; the windows are numbered from 0 in the order of the rows."""
    chosen = np.concatenate(rows)
    length = windows.length[chosen]
    row = np.repeat(np.arange(len(rows)), [len(each) for each in rows])  # (W,) row of each window
    ends = np.cumsum(length)
    row_starts = np.concatenate([[0], np.cumsum([windows.length[each].sum() for each in rows])])[:-1]
    start = ends - length - row_starts[row]  # (W,) column where each window begins
    window = np.repeat(np.arange(len(chosen)), length)  # (I,) window of each input
    place = np.arange(len(window)) - np.repeat(ends - length, length)
    column = start[window] + place
    width = int(column.max()) + 1
    index = windows.first[chosen][window] + place
    shape = (len(rows), width)
    tokens, places, segments = np.full(shape, PADDING_ID), np.zeros(shape, dtype=np.int64), np.full(shape, -1)
    tokens[row[window], column] = text.tokens[index]
    places[row[window], column] = place
    segments[row[window], column] = window
    counted = is_target[index + 1] & (place >= windows.context[chosen][window])
    return Batch(
        tokens=torch.from_numpy(tokens.astype(np.int64)),
        positions=torch.from_numpy((row[window] * width + column)[counted]),
        targets=torch.from_numpy(text.tokens[index[counted] + 1].astype(np.int64)),
        rows=torch.from_numpy(window[counted]),
        places=torch.from_numpy(places),
        segments=torch.from_numpy(segments.astype(np.int64)),
    )


VALID_BATCH_TOKENS = 4096

Rows = np.ndarray | Sequence[np.ndarray]
"""The rows of a batch: a window each, or several windows each."""


@dataclass(frozen=True)
class TrainingBatch:
    """What one rank computes in one go for one optimiser step."""

    batch: Batch
    """Its part of the step's rows; it may have no target."""
    step_targets: int
    """Targets of the whole step: what the loss is divided by."""
    epochs_done: float
    """Epochs that are through after the step."""
    is_last_part: bool
    """Whether the optimiser steps after it."""
    ends_epoch: bool
    """Whether the step is the last of its epoch."""
    step_seconds: float = 0.0
    """A text has none."""

    def to(self, device: torch.device | str) -> "TrainingBatch":
        """The same on another device."""
        return replace(self, batch=self.batch.to(device))


class BatchSource:
    """Makes batches of the rows of a text, as the model's context asks for."""

    def __init__(self, text: EncodedText, architecture: ArchitectureSettings):
        self.text = text
        self.windows = divide(text, architecture.maximum_tokens)
        self.is_packed = architecture.context == "packed"
        self.row_length = architecture.maximum_tokens
        self.is_target = text.is_target()
        counted = np.concatenate([[0], np.cumsum(self.is_target)])
        first, length = self.windows.first, self.windows.length
        self._targets = counted[first + length + 1] - counted[first + 1]

    def targets(self, rows: Rows) -> int:
        """How many targets the rows have."""
        if not len(rows):
            return 0
        return int(self._targets[np.concatenate(rows) if self.is_packed else rows].sum())

    def make(self, rows: Rows) -> Batch:
        """The batch of the rows; where there is none, one of padding without a target."""
        if not len(rows):
            nothing = torch.empty(0, dtype=torch.int64)
            padding = torch.full((1, 1), PADDING_ID)
            zeros = torch.zeros_like(padding) if self.is_packed else None
            return Batch(padding, nothing, nothing, nothing, zeros, zeros)
        if self.is_packed:
            return make_packed_batch(self.text, self.is_target, self.windows, rows)  # type: ignore[arg-type]
        return make_batch(self.text, self.is_target, self.windows, rows)  # type: ignore[arg-type]


class TrainingBatches:
    """This rank's batches of all epochs, behind those that are ``done``."""

    def __init__(
        self,
        text: EncodedText,
        architecture: ArchitectureSettings,
        settings: TrainingSettings,
        seed: int,
        plan: RankPlan | None = None,
    ):
        self.source = BatchSource(text, architecture)
        self.settings, self.seed, self.plan = settings, seed, plan or RankPlan()
        self.epochs = math.ceil(settings.epochs)
        self.done = 0

    def order(self, epoch: int) -> Sequence[Rows]:
        """The rows of each step of an epoch; the last epoch may be a fraction."""
        source, tokens = self.source, self.settings.batch_tokens
        if not source.is_packed:
            return epoch_order(source.windows, tokens, self.seed, epoch, self._share(epoch))
        batches = packed_batches(source.windows, source.row_length, tokens, self.seed, epoch)
        return batches[: max(1, round(self._share(epoch) * len(batches)))]

    def _share(self, epoch: int) -> float:
        return min(1.0, self.settings.epochs - epoch)

    def total_steps(self) -> int:
        """Optimiser steps of all epochs together."""
        return sum(len(self.order(epoch)) for epoch in range(self.epochs))

    def __len__(self) -> int:
        return self.total_steps() * self.settings.accumulate

    def state_dict(self) -> dict[str, int]:
        """How many batches are done."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on behind them."""
        self.done = state["done"]

    def __iter__(self) -> Iterator[TrainingBatch]:
        skipped, before = self.done // self.settings.accumulate, 0
        for epoch in range(self.epochs):
            order = self.order(epoch)
            for index in range(max(0, skipped - before), len(order)):
                for part in self._parts(order[index], epoch, index, len(order)):
                    self.done += 1
                    yield part
            before += len(order)
        self.done = 0

    def _parts(self, rows: Rows, epoch: int, index: int, steps: int) -> Iterator[TrainingBatch]:
        targets = self.source.targets(rows)
        ends_epoch = index == steps - 1
        done = epoch + (1.0 if ends_epoch else self._share(epoch) * (index + 1) / steps)
        accumulate, ranks = self.settings.accumulate, self.plan.world_size
        for part in range(accumulate):
            # Neighbours are of like length, so taking every n-th row gives all parts about as many tokens.
            chosen = rows[part * ranks + self.plan.rank :: accumulate * ranks]
            yield TrainingBatch(
                batch=self.source.make(chosen),
                step_targets=targets,
                epochs_done=min(self.settings.epochs, done),
                is_last_part=part == accumulate - 1,
                ends_epoch=ends_epoch,
            )


class ValidBatches:
    """This rank's part of the valid text; the same batches at every validation."""

    def __init__(self, text: EncodedText, architecture: ArchitectureSettings, plan: RankPlan | None = None):
        # Packing saves nothing here: all sentences of a length are there to be put together.
        self.source = BatchSource(text, architecture.model_copy(update={"context": "sentence"}))
        self.plan = plan or RankPlan()

    def __iter__(self) -> Iterator[Batch]:
        for rows in batches_by_length(self.source.windows, VALID_BATCH_TOKENS):
            yield self.source.make(rows[self.plan.rank :: self.plan.world_size])
