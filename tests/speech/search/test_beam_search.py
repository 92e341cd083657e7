"""Beam search over many utterances at once gives torchaudio's answers for one after the other."""

import pytest
import torch

import tasks.speech.search.beam_search
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


@pytest.mark.parametrize("width", [1, 4])
def test_same_hypotheses_and_scores_as_torchaudio_for_one_utterance_after_the_other(model, width, monkeypatch):
    from torchaudio.models import RNNTBeamSearch

    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(1, 14, (9,), generator=generator).tolist()
    encoded = [torch.randn(length, 32, generator=generator) for length in lengths]
    peer = RNNTBeamSearch(model, BLANK, step_max_tokens=6)
    settings = SearchSettings(beam_width=width, nbest=width, step_max_symbols=6)
    monkeypatch.setattr(tasks.speech.search.beam_search, "_BATCH", 4)
    emitted = 0
    for ours, frames in zip(beam_search(model, BLANK, encoded, settings), encoded, strict=True):
        with torch.inference_mode():
            theirs = peer._search(frames[None], None, width)
        assert [one.units for one in ours] == [tuple(units[1:]) for units, *_ in theirs]
        assert [one.transducer for one in ours] == pytest.approx([score for *_, score in theirs], abs=1e-4)
        scores = [one.transducer / (len(one.units) + 2) for one in ours]
        assert [one.score for one in ours] == pytest.approx(scores, abs=1e-9)
        assert scores == sorted(scores, reverse=True)
        emitted += len(ours[0].units)
    assert emitted > 20
