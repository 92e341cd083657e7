"""Training speech, and the utterances of each step over all epochs."""

from collections import Counter

import numpy as np
import pytest
import torch

from tasks.speech.recogniser.recogniser import FeatureStatistics
from tasks.speech.recogniser.settings import FeatureSettings, TrainedRecogniser
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.training.ranks import ALONE, RankPlan


class Letters:
    """Utterance n is n + 1 letters long and lasts as many tenths of a second; its features are all n."""

    synthetic = False
    languages = None
    settings = FeatureSettings()

    def __init__(self, count, silent):
        self.texts = ["x" * (n + 1) for n in range(count)]
        self.seconds = np.arange(1, count + 1) / 10
        self.left_out = Counter()
        self.silent = silent

    def features(self, index, epoch, *, is_quiet=False):
        return None if index in self.silent else torch.full((10 * (index + 1), 2), float(index))


class OneUnitALetter:
    def encode(self, text, _languages):
        return [1] * len(text)


def batches_of(count, plan=ALONE, silent=(), **training):
    no_masks = {"frequency_masks": 0, "time_masks": 0}
    settings = TrainedRecogniser(training={"batch_seconds": 8.0, **training}, augmentation=no_masks)
    plain = FeatureStatistics(torch.zeros(2), torch.ones(2))
    return SpeechBatches(Letters(count, silent), OneUnitALetter(), plain, settings, plan)


def test_every_utterance_comes_once_an_epoch_in_batches_of_about_the_seconds_that_were_asked_for():
    batches = batches_of(60, epochs=2.0, batch_seconds=20.0)
    first, second = (np.concatenate(batches.order(epoch)) for epoch in range(2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(60))
    assert not np.array_equal(first, second)
    seconds = [sum((row + 1) / 10 for row in rows) for rows in batches.order(0)]
    assert 18.0 < np.mean(seconds) < 22.0
    assert max(seconds) < 20.0 + 6.0  # the longest utterance lasts 6 s


def test_ranks_share_a_step():
    ranks = [list(batches_of(20, RankPlan(rank=rank, world_size=3, devices=3))) for rank in range(3)]
    for (whole, targets), *parts in zip(batches_of(20), *ranks, strict=True):
        assert [divisor for _, divisor in parts] == [targets / 3] * 3
        assert sum(int(part.target_lengths.sum() * part.weight) for part, _ in parts) == targets
        assert sum(part.seconds for part, _ in parts) == pytest.approx(whole.seconds)
