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
from tasks.language_model.training.packing import make_packed_batch, packed_batches
from tasks.language_model.transformer.batching import Batch, batches_by_length, epoch_order, make_batch
from tasks.language_model.transformer.windows import windows_of
from tasks.language_model.vocabulary import PADDING_ID
from tasks.training.ranks.plan import RankPlan

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
    epoch: int
    """From 0."""
    index: int
    """Number of the step in its epoch, from 0."""
    epochs_done: float
    """Epochs that are through after the step."""
    is_last_part: bool
    """Whether the optimiser steps after it."""
    ends_epoch: bool
    """Whether the step is the last of its epoch."""

    def to(self, device: torch.device | str) -> "TrainingBatch":
        """The same on another device."""
        return replace(self, batch=self.batch.to(device))


class BatchSource:
    """Makes batches of the rows of a text, as the model's context asks for."""

    def __init__(self, text: EncodedText, architecture: ArchitectureSettings):
        self.text = text
        self.windows = windows_of(text, architecture)
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
    """This rank's batches of all epochs, from ``start`` on."""

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
        self.start = (0, 0)
        """Epoch and number of the step in it to begin with."""

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

    def __iter__(self) -> Iterator[TrainingBatch]:
        first_epoch, first_index = self.start
        for epoch in range(first_epoch, self.epochs):
            order = self.order(epoch)
            for index in range(first_index, len(order)):
                yield from self._parts(order[index], epoch, index, len(order))
            first_index = 0

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
                epoch=epoch,
                index=index,
                epochs_done=min(self.settings.epochs, done),
                is_last_part=part == accumulate - 1,
                ends_epoch=ends_epoch,
            )


class ValidBatches:
    """This rank's part of the valid text; the same batches at every validation."""

    def __init__(self, text: EncodedText, architecture: ArchitectureSettings, plan: RankPlan | None = None):
        # Packing saves nothing here: all sentences of a length are there to be put together.
        unpacked = "sentence" if architecture.context == "packed" else architecture.context
        self.source = BatchSource(text, architecture.model_copy(update={"context": unpacked}))
        self.plan = plan or RankPlan()

    def __iter__(self) -> Iterator[Batch]:
        for rows in batches_by_length(self.source.windows, VALID_BATCH_TOKENS):
            yield self.source.make(rows[self.plan.rank :: self.plan.world_size])
