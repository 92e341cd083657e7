"""Which utterances an optimiser step is made of, over all epochs, and which of them this process computes.

The order is a function of speech, settings, seed and epoch alone; augmentation and voices are functions of seed, epoch
and utterance. However many ranks there are, a step has the same utterances, and an interrupted run goes on with the
same ones.
"""

import math
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from tasks.speech.recogniser.recogniser import FeatureStatistics, pad_features
from tasks.speech.recogniser.settings import AugmentationSettings, RecogniserArchitecture, RecogniserTraining
from tasks.speech.recogniser.training_speech import TrainingSpeech
from tasks.speech.recogniser.units import Units
from tasks.training.ranks.plan import RankPlan


def hide_parts(features: Tensor, settings: AugmentationSettings, generator: np.random.Generator) -> Tensor:
    """A copy of normalised features (T, bands) with some bands and stretches set to 0, the mean.

    Source: Park and others, SpecAugment (2019), without time warping.
    """
    features = features.clone()
    frames, bands = features.shape
    for _ in range(settings.frequency_masks):
        start, width = _stretch(bands, min(settings.frequency_width, bands), generator)
        features[:, start : start + width] = 0
    longest = min(settings.time_width, int(settings.time_share * frames))
    for _ in range(settings.time_masks):
        start, width = _stretch(frames, longest, generator)
        features[start : start + width] = 0
    return features


def _stretch(size: int, longest: int, generator: np.random.Generator) -> tuple[int, int]:
    width = int(generator.integers(0, longest + 1))
    return int(generator.integers(0, size - width + 1)), width


_BATCHES_SORTED_TOGETHER = 20
"""Utterances of so many batches are sorted by length before they are divided: little padding, yet random batches."""


@dataclass(frozen=True)
class SpeechBatch:
    """What one rank computes for one optimiser step."""

    features: Tensor
    """(B, T, bands), padded as the encoder wants it."""
    lengths: Tensor
    """Frames of each utterance (B,)."""
    targets: Tensor
    """Units (B, U), padded with 0."""
    target_lengths: Tensor
    """Units of each utterance (B,)."""
    step_targets: int
    """Units of the whole step, over all ranks: what the loss is divided by."""
    step_seconds: float
    """Seconds of speech of this rank's part."""
    silent: int
    """Utterances of this rank that the synthesiser said nothing of."""
    weight: float
    """0 where the rank has no utterance of its own and computes on silence to keep up with the others; else 1."""
    epochs_done: float
    ends_epoch: bool
    is_last_part: bool = True
    """Each batch is a step."""

    def to(self, device: torch.device | str) -> "SpeechBatch":
        """The same on another device."""
        moved = {name: getattr(self, name).to(device) for name in ("features", "lengths", "targets", "target_lengths")}
        return replace(self, **moved)


class SpeechBatches:
    """This rank's batches of all epochs, behind those that are ``done``."""

    def __init__(
        self,
        speech: TrainingSpeech,
        units: Units,
        statistics: FeatureStatistics,
        architecture: RecogniserArchitecture,
        training: RecogniserTraining,
        augmentation: AugmentationSettings,
        plan: RankPlan | None = None,
        workers: int = 0,
    ):
        """``workers``: processes that make batches ahead; with 0 this one makes each when it is asked for."""
        self.workers = workers
        self.speech, self.statistics = speech, statistics
        self.architecture, self.training, self.augmentation = architecture, training, augmentation
        self.plan = plan or RankPlan()
        self.seed = training.seed
        languages: Iterable[Sequence[str | None] | None] = speech.languages or repeat(None, len(speech.texts))
        self.targets = [units.encode(text, of_words) for text, of_words in zip(speech.texts, languages, strict=True)]
        self.epochs = math.ceil(training.epochs)
        self.steps = [len(self.order(epoch)) for epoch in range(self.epochs)]
        self.done = 0

    @property
    def total_steps(self) -> int:
        """Optimiser steps of all epochs together."""
        return sum(self.steps)

    def order(self, epoch: int) -> list[np.ndarray]:
        """The utterances of each step of an epoch; the last epoch may be a fraction."""
        generator = np.random.default_rng([self.seed, epoch])
        seconds = self.speech.seconds
        keys = generator.random(len(seconds))
        if epoch == 0 and self.training.short_first:
            # The longest may stand nowhere before short_first, the shortest anywhere.
            earliest = np.argsort(np.argsort(seconds, kind="stable")) / len(seconds) * self.training.short_first
            keys = earliest + (1 - earliest) * keys
        shuffled = np.argsort(keys, kind="stable")
        batches: list[np.ndarray] = []
        for pool in _divided(shuffled, seconds, _BATCHES_SORTED_TOGETHER * self.training.batch_seconds):
            pool = pool[np.argsort(seconds[pool], kind="stable")]
            of_pool = _divided(pool, seconds, self.training.batch_seconds)
            batches += [of_pool[i] for i in generator.permutation(len(of_pool))]
        share = min(1.0, self.training.epochs - epoch)
        return batches[: max(1, round(share * len(batches)))]

    def __len__(self) -> int:
        return self.total_steps

    def state_dict(self) -> dict[str, int]:
        """How many batches are done."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on behind them."""
        self.done = state["done"]

    def __iter__(self) -> Iterator[SpeechBatch]:
        for batch in self._in_order(self.done):
            if batch.silent:
                self.speech.left_out["not_spoken"] += batch.silent
            self.done += 1
            yield batch
        self.done = 0

    def _in_order(self, done: int) -> Iterator[SpeechBatch]:
        for epoch in range(self.epochs):
            order = self.order(epoch)
            places = [(rows, epoch, index) for index, rows in enumerate(order)][done:]
            done = max(0, done - len(order))
            if self.workers:
                yield from DataLoader(
                    places,  # type: ignore[arg-type]
                    batch_size=None,
                    num_workers=self.workers,
                    collate_fn=self._batch,  # type: ignore[arg-type]
                    worker_init_fn=_ends_when_told,
                    # Else it draws a number from the generator of the dropout.
                    generator=torch.Generator(),
                )
            else:
                yield from map(self._batch, places)

    def _batch(self, place: tuple[np.ndarray, int, int]) -> SpeechBatch:
        rows, epoch, index = place
        chosen = rows[self.plan.rank :: self.plan.world_size]
        is_augmented = sum(self.steps[:epoch]) + index >= self.augmentation.begin_share * self.total_steps
        heard = [
            (features, self.targets[row])
            for row in chosen
            if (features := self._features(int(row), epoch, is_augmented)) is not None
        ]
        silent = len(chosen) - len(heard)
        own = len(heard) > 0
        if not own:
            silence = torch.zeros(self.architecture.segment_frames, len(self.statistics.mean))
            heard = [(silence, self.targets[rows[0]])]
        features, lengths = pad_features([features for features, _ in heard], self.architecture)
        targets, target_lengths = pad_targets([units for _, units in heard])
        steps, sound = self.steps[epoch], self.speech.settings
        ends_epoch = index == steps - 1
        done = epoch + min(1.0, self.training.epochs - epoch) * (index + 1) / steps
        return SpeechBatch(
            features=features,
            lengths=lengths,
            targets=targets,
            target_lengths=target_lengths,
            step_targets=sum(len(self.targets[row]) for row in rows),
            step_seconds=float(lengths.sum()) * (sound.hop_samples / sound.sample_rate) if own else 0.0,
            silent=silent,
            weight=float(own),
            epochs_done=min(self.training.epochs, epoch + 1 if ends_epoch and done > epoch + 0.999 else done),
            ends_epoch=ends_epoch,
        )

    def _features(self, row: int, epoch: int, is_augmented: bool) -> Tensor | None:
        heard = self.speech.features(row, epoch, is_quiet=not is_augmented)
        if heard is None:
            return None
        features = self.statistics.normalise(heard)
        if not is_augmented:
            return features
        return hide_parts(features, self.augmentation, np.random.default_rng([self.seed, epoch, row]))


def _ends_when_told(_worker: int) -> None:
    """A worker is forked with the handler of a training, which does not end before its step is done."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def pad_targets(targets: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Units of several utterances as (B, U), padded with 0, and their numbers (B,)."""
    lengths = torch.tensor([len(units) for units in targets])
    rows = [torch.tensor(units, dtype=torch.int64) for units in targets]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths


def _divided(rows: np.ndarray, seconds: np.ndarray, limit: float) -> list[np.ndarray]:
    """``rows`` cut into stretches of about ``limit`` seconds each; none is empty."""
    begun = np.floor((np.cumsum(seconds[rows]) - seconds[rows] / 2) / limit).astype(np.int64)
    return [part for part in np.split(rows, np.flatnonzero(np.diff(begun)) + 1) if len(part)]
