"""Beam search: torchaudio's answers, exhaustive search on a toy, and how batches do not matter."""

import itertools

import numpy as np
import pytest
import torch

from tasks.speech.recogniser.recogniser import make_model
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search

BLANK = 12


@pytest.fixture(scope="module")
def model():
    """A transducer with random weights, made so that it emits a unit every few frames."""
    architecture = RecogniserArchitecture(
        encoding=32, reduction_input=4, layers=1, heads=2, feed_forward=16,
        predictor_width=16, predictor_layers=2, predictor_norm=True,
    )  # fmt: skip
    model = make_model(architecture, FeatureSettings(bands=8), BLANK + 1, seed=1).eval()
    with torch.no_grad():
        model.joiner.linear.weight.mul_(3)
        model.joiner.linear.bias[-1] += 1
    return model


def utterances(count=9, least=1, most=14):
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(least, most, (count,), generator=generator).tolist()
    return [torch.randn(length, 32, generator=generator) for length in lengths]


def search(model, encoded, **settings):
    return beam_search(model, BLANK, encoded, SearchSettings(**settings))


@pytest.mark.parametrize("width", [1, 4])
def test_same_hypotheses_and_scores_as_torchaudio(model, width):
    from torchaudio.models import RNNTBeamSearch

    encoded = utterances()
    peer = RNNTBeamSearch(model, BLANK, step_max_tokens=6)
    found = search(model, encoded, beam_width=width, nbest=width, step_max_symbols=6, batch_utterances=4)
    emitted = 0
    for ours, frames in zip(found, encoded, strict=True):
        with torch.inference_mode():
            theirs = peer._search(frames[None], None, width)
        assert [hypothesis.units for hypothesis in ours] == [tuple(units[1:]) for units, *_ in theirs]
        assert [hypothesis.transducer for hypothesis in ours] == pytest.approx(
            [score for *_, score in theirs], abs=1e-4
        )
        emitted += len(ours[0].units)
    assert emitted > 20


def test_result_does_not_depend_on_the_batch(model):
    encoded = utterances(8)
    alone = [search(model, [frames], beam_width=3)[0] for frames in encoded]
    together = search(model, encoded, beam_width=3, batch_utterances=100)
    for one, other in zip(alone, together, strict=True):
        assert [hypothesis.units for hypothesis in one] == [hypothesis.units for hypothesis in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)


class ToyModel(torch.nn.Module):
    """A transducer of two units whose symbols' probabilities depend on the frame and on how many units there are."""

    def __init__(self, frames):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        generator = torch.Generator().manual_seed(5)
        self.table = torch.randn(frames, 6, 3, generator=generator)  # (T, units so far, V)

    def predict(self, units, lengths, state):
        count = torch.zeros(len(units), 1) if state is None else state[0][0] + 1
        return count[:, None], lengths, [[count]]

    def join(self, frames, frame_lengths, outputs, lengths):
        rows = self.table[frames[:, 0, 0].long(), outputs[:, 0, 0].long().clamp(max=5)]
        return rows[:, None, None], frame_lengths, lengths

    def log_probability(self, units, most):
        """Sum over all alignments with at most so many units in a frame, by the forward recursion."""
        rows = torch.log_softmax(self.table, 2).numpy()
        before = np.array([0.0, *[-np.inf] * len(units)])
        for frame in range(len(self.table)):
            emitted = total = before
            for _ in range(most):
                steps = [rows[frame, min(place, 5), unit] for place, unit in enumerate(units)]
                emitted = np.concatenate([[-np.inf], emitted[:-1] + steps])
                total = np.logaddexp(total, emitted)
            before = total + [rows[frame, min(place, 5), 2] for place in range(len(total))]
        return before[-1]


def test_a_wide_beam_is_exhaustive_search():
    """At most two units in each of three frames: 127 sequences, and none falls out of the beam."""
    toy = ToyModel(3)
    frames = torch.arange(3.0)[:, None]
    (found,) = beam_search(toy, 2, [frames], SearchSettings(beam_width=127, nbest=127, step_max_symbols=2))
    every = [units for length in range(7) for units in itertools.product((0, 1), repeat=length)]
    expected = {units: toy.log_probability(units, 2) for units in every}
    assert {h.units: h.transducer for h in found} == pytest.approx(expected, abs=1e-4)
    scores = [h.transducer / (len(h.units) + 2) for h in found]
    assert [h.score for h in found] == pytest.approx(scores, abs=1e-9)
    assert scores == sorted(scores, reverse=True)
