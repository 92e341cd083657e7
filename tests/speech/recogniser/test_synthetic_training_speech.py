import pytest
import torch

from tasks.errors import SpeechError
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserTraining
from tasks.speech.recogniser.training_speech import SyntheticSpeech

pytest.importorskip("espeakng_loader", reason="the synthesiser is an optional package")

LINES = ["The cat sat on the mat.", "It is 7 o'clock.", "Hello there, my friend!", "...", "One", "So it goes."]


@pytest.fixture
def speech(tmp_path) -> SyntheticSpeech:
    return _speech(tmp_path)


def _speech(tmp_path, seed: int = 1, **synthesis) -> SyntheticSpeech:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES) + "\n")
    settings = SynthesisSettings(voice_set="train", **synthesis)
    return SyntheticSpeech(text, settings, FeatureSettings(), RecogniserTraining(minimum_words=2, seed=seed))


def test_what_cannot_be_spoken_is_counted_and_a_part_is_drawn_by_the_seed(speech, tmp_path):
    assert speech.texts == ["the cat sat on the mat", "hello there my friend", "so it goes"]
    assert sum(speech.left_out.values()) == 3
    assert speech.left_out["digits"] == 1
    one, same = (_speech(tmp_path, sentences=2).texts for _ in range(2))
    assert one == same
    assert len(one) == 2
    (tmp_path / "digits.txt").write_text("98765 43210\n")
    with pytest.raises(SpeechError, match="none of its 1 lines can be spoken") as caught:
        SyntheticSpeech(tmp_path / "digits.txt", SynthesisSettings(), FeatureSettings(), RecogniserTraining())
    assert "98765" not in str(caught.value)


def test_an_epoch_sounds_the_same_again_and_the_next_one_does_not(speech, tmp_path):
    first, other = speech.features(0, 0), speech.features(0, 1)
    speech.features(1, 0)
    assert torch.equal(speech.features(0, 0), first)
    assert torch.equal(_speech(tmp_path).features(0, 0), first)
    assert first.shape != other.shape or not torch.equal(first, other)
    assert not torch.equal(_speech(tmp_path, seed=2).features(0, 0)[:50], first[:50])
