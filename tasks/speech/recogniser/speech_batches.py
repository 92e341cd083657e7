"""The utterances of each optimiser step over all epochs, and the share of them that this process computes.

The order depends on speech, settings, seed and epoch only. Augmentation and voices depend on seed, epoch and utterance.
A step has the same utterances for any number of ranks, and so has a resumed run.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tasks.speech.recogniser.recogniser import FeatureStatistics, pad_features
from tasks.speech.recogniser.settings import AugmentationSettings, TrainedRecogniser
from tasks.speech.recogniser.training_speech import TrainingSpeech
from tasks.speech.recogniser.units import Units
from tasks.torch_setup import stand_in_for_torchaudio_extension
from tasks.training.loop import Batches, Step
from tasks.training.ranks import ALONE, RankPlan

_TIME_SHARE = 0.125
"""Largest share of an utterance for one mask in time."""


def hide_parts(features: Tensor, settings: AugmentationSettings, seed: int) -> Tensor:
    """A copy of normalised features (T, bands) with some bands and stretches set to 0, the mean.

    Source: Park and others, SpecAugment (2019), without time warping.
    """
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import SpecAugment

    masks = SpecAugment(
        n_freq_masks=settings.frequency_masks,
        freq_mask_param=settings.frequency_width,
        n_time_masks=settings.time_masks,
        time_mask_param=settings.time_width,
        p=_TIME_SHARE,
        zero_masking=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        masked: Tensor = masks(features.T[None])[0].T
    return masked


_BATCHES_SORTED_TOGETHER = 20
"""Number of batches whose utterances are sorted by length together: little padding, yet random batches."""


class SpeechBatch(NamedTuple):
    """The part of one optimiser step that one rank computes."""

    features: Tensor
    """(B, T, bands), padded for the encoder."""
    lengths: Tensor
    """Frames of each utterance (B,)."""
    targets: Tensor
    """Units (B, U), padded with 0."""
    target_lengths: Tensor
    """Units of each utterance (B,)."""
    weight: float
    """0 if the rank has no utterance and computes on silence to stay in step with the others; else 1."""
    seconds: float
    """Duration of the utterances."""


class SpeechBatches(Batches):
    """This process's batches of speech."""

    def __init__(
        self,
        speech: TrainingSpeech,
        units: Units,
        statistics: FeatureStatistics,
        settings: TrainedRecogniser,
        plan: RankPlan = ALONE,
    ):
        self.speech, self.units, self.statistics = speech, units, statistics
        self.architecture, self.training = settings.architecture, settings.training
        self.augmentation, self.seed = settings.augmentation, settings.training.seed
        languages: Sequence[Sequence[str | None] | None] = speech.languages or [None] * len(speech.texts)
        self.ids = [units.encode(text, of_words) for text, of_words in zip(speech.texts, languages, strict=True)]
        super().__init__(self.training.epochs, plan)

    def order(self, epoch: int, share: float = 1.0) -> list[np.ndarray]:
        """The utterances of each step of a share of an epoch."""
        generator = np.random.default_rng([self.seed, epoch])
        seconds = self.speech.seconds
        keys = generator.random(len(seconds))
        if epoch == 0 and self.training.short_first:
            # The longest may come no earlier than at short_first, the shortest at any step.
            earliest = np.argsort(np.argsort(seconds, kind="stable")) / len(seconds) * self.training.short_first
            keys = earliest + (1 - earliest) * keys
        shuffled = np.argsort(keys, kind="stable")
        batches: list[np.ndarray] = []
        for pool in _divided(shuffled, seconds, _BATCHES_SORTED_TOGETHER * self.training.batch_seconds):
            pool = pool[np.argsort(seconds[pool], kind="stable")]
            of_pool = _divided(pool, seconds, self.training.batch_seconds)
            batches += [of_pool[i] for i in generator.permutation(len(of_pool))]
        return batches[: max(1, round(share * len(batches)))]

    def targets(self, step: Step) -> int:
        """Number of units of a step, over all processes."""
        return sum(len(self.ids[row]) for row in step.rows)

    def made(self, numbers: range) -> Iterator[SpeechBatch]:
        """The batches of these numbers; silent utterances are counted."""
        for number in numbers:
            yield self._batch(number)

    def _batch(self, number: int) -> SpeechBatch:
        rows, epoch, *_ = self.steps[number]
        chosen = rows[self.plan.rank :: self.plan.world_size]
        is_augmented = number >= self.augmentation.begin_share * len(self.steps)
        heard = []
        for row in chosen.tolist():
            features = self.speech.features(row, epoch, is_quiet=not is_augmented)
            if features is not None:
                features = self.statistics.normalise(features)
                if is_augmented:
                    drawn = np.random.default_rng([self.seed, epoch, row]).integers(2**63)
                    features = hide_parts(features, self.augmentation, int(drawn))
                heard.append((features, self.ids[row]))
        silent, own = len(chosen) - len(heard), len(heard) > 0
        if silent:
            self.speech.left_out["not_spoken"] += silent
        if not own:
            silence = torch.zeros(self.architecture.segment_frames, len(self.statistics.mean))
            heard = [(silence, self.ids[rows[0]])]
        features, lengths = pad_features([features for features, _ in heard], self.architecture)
        targets, target_lengths = pad_targets([units for _, units in heard])
        sound = self.speech.settings
        seconds = float(lengths.sum()) * (sound.hop_samples / sound.sample_rate) if own else 0.0
        return SpeechBatch(features, lengths, targets, target_lengths, float(own), seconds)


def pad_targets(targets: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Units of several utterances as (B, U), padded with 0, and their numbers (B,)."""
    lengths = torch.tensor([len(units) for units in targets])
    rows = [torch.tensor(units, dtype=torch.int64) for units in targets]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths


def _divided(rows: np.ndarray, seconds: np.ndarray, limit: float) -> list[np.ndarray]:
    """``rows`` cut into stretches of about ``limit`` seconds each; none is empty."""
    begun = np.floor((np.cumsum(seconds[rows]) - seconds[rows] / 2) / limit).astype(np.int64)
    return [part for part in np.split(rows, np.flatnonzero(np.diff(begun)) + 1) if len(part)]
