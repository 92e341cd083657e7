from collections import Counter

import numpy as np
import pytest
import torch

from tasks.speech.recogniser.recogniser import FeatureStatistics
from tasks.speech.recogniser.settings import FeatureSettings, TrainedRecogniser
from tasks.speech.recogniser.speech_batches import SpeechBatches
from tasks.training.ranks import ALONE, RankPlan


class _Letters:
    """Utterance n is n + 1 letters long and lasts as many tenths of a second; its features are all n."""

    synthetic = False
    languages = None
    settings = FeatureSettings()

    def __init__(self, count: int):
        self.texts = ["x" * (n + 1) for n in range(count)]
        self.seconds = np.arange(1, count + 1) / 10
        self.left_out: Counter[str] = Counter()

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> torch.Tensor:
        return torch.full((10 * (index + 1), 2), float(index))


class _OneUnitALetter:
    def encode(self, text: str, _languages: None) -> list[int]:
        return [1] * len(text)


PLAIN = FeatureStatistics(torch.zeros(2), torch.ones(2))


def _batches(count: int = 50, plan: RankPlan = ALONE, **training) -> SpeechBatches:
    no_masks = {"frequency_masks": 0, "time_masks": 0}
    settings = TrainedRecogniser(training={"batch_seconds": 8.0, **training}, augmentation=no_masks)
    return SpeechBatches(_Letters(count), _OneUnitALetter(), PLAIN, settings, plan)


def test_every_utterance_comes_once_an_epoch_in_batches_of_about_the_seconds_that_were_asked_for():
    batches = _batches(60, epochs=2.0, batch_seconds=20.0)
    for epoch in range(2):
        assert sorted(np.concatenate(batches.order(epoch)).tolist()) == list(range(60))
    assert not np.array_equal(np.concatenate(batches.order(0)), np.concatenate(batches.order(1)))
    seconds = [sum((row + 1) / 10 for row in rows) for rows in batches.order(0)]
    assert 18.0 < np.mean(seconds) < 22.0
    assert max(seconds) < 20.0 + 6.0  # the longest utterance lasts 6 s


def test_short_ones_come_first_and_only_in_the_first_epoch():
    batches = _batches(2000, epochs=2.0, short_first=0.5, batch_seconds=400.0)
    lengths = [[float(np.mean(rows)) for rows in batches.order(epoch)] for epoch in range(2)]
    first, second = (np.mean(each[: len(each) // 10]) for each in lengths)
    assert first < 0.75 * second


def test_ranks_share_a_step():
    alone = list(_batches(20))
    ranks = [list(_batches(20, RankPlan(rank=rank, world_size=3, devices=3))) for rank in range(3)]
    for step, whole in enumerate(alone):
        parts = [rank[step] for rank in ranks]
        targets = whole[1]
        assert [divisor for _, divisor in parts] == [targets / 3] * 3
        assert sum(int(part.target_lengths.sum() * part.weight) for part, _ in parts) == targets
        assert sum(part.seconds for part, _ in parts) == pytest.approx(whole[0].seconds)


def test_an_utterance_that_says_nothing_is_passed_over():
    batches = _batches(12, batch_seconds=0.8)
    whole = sum(len(batch.lengths) for batch, _ in batches)
    loud = batches.speech.features
    batches.speech.features = lambda index, epoch, **_: None if index in (0, 11) else loud(index, epoch)  # type: ignore[method-assign]
    found = [batch for batch, _ in batches]
    assert whole == 12
    assert sum(len(batch.lengths) for batch in found if batch.weight) == 10
    # The last utterance fills a batch of its own: silence keeps its place and has no weight.
    assert [batch.weight for batch in found].count(0.0) == 1
    assert batches.speech.left_out == {"not_spoken": 2}


def test_batches_made_ahead_are_those_made_when_asked_for():
    whole, ahead = _batches(epochs=1.5), _batches(epochs=1.5)
    ahead.workers = 2
    loud = ahead.speech.features
    whole.speech.features = ahead.speech.features = lambda index, epoch, **_: None if index == 3 else loud(index, epoch)  # type: ignore[method-assign]
    state = torch.get_rng_state()
    for (expected, step), (found, same) in zip(whole, ahead, strict=True):
        assert torch.equal(expected.features, found.features)
        assert torch.equal(expected.targets, found.targets)
        assert step == same
    assert ahead.speech.left_out == whole.speech.left_out
    assert torch.equal(torch.get_rng_state(), state)
