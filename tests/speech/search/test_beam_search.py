"""Beam search over many utterances at once gives torchaudio's answers for one after the other."""

import pytest
import torch
from tiny_recogniser import random_recogniser

import tasks.speech.search.beam_search
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search

ENCODING = 32


@pytest.fixture(scope="module")
def recogniser():
    return random_recogniser(emits=True, encoding=ENCODING, predictor_layers=2, predictor_norm=True)


@pytest.mark.parametrize("width", [1, 4])
def test_same_hypotheses_and_scores_as_torchaudio_for_one_utterance_after_the_other(recogniser, width, monkeypatch):
    from torchaudio.models import RNNTBeamSearch

    model, blank = recogniser.model, recogniser.units.blank
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(1, 14, (9,), generator=generator).tolist()
    encoded = [torch.randn(length, ENCODING, generator=generator) for length in lengths]
    peer = RNNTBeamSearch(model, blank, step_max_tokens=6)
    settings = SearchSettings(beam_width=width, nbest=width, step_max_symbols=6)
    monkeypatch.setattr(tasks.speech.search.beam_search, "_BATCH", 4)
    emitted = 0
    for ours, frames in zip(beam_search(model, blank, encoded, settings), encoded, strict=True):
        with torch.inference_mode():
            theirs = peer._search(frames[None], None, width)
        assert [one.units for one in ours] == [tuple(units[1:]) for units, *_ in theirs]
        assert [one.transducer for one in ours] == pytest.approx([score for *_, score in theirs], abs=1e-4)
        scores = [one.transducer / (len(one.units) + 2) for one in ours]
        assert [one.score for one in ours] == pytest.approx(scores, abs=1e-9)
        assert scores == sorted(scores, reverse=True)
        emitted += len(ours[0].units)
    assert emitted > 20
