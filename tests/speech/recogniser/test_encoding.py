"""Recordings on their way to the encoder: those that cannot be used are all named, by headers and by samples."""

import numpy as np
import pytest
import soundfile
import torch

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.recogniser.encoded_speech import encode_utterances
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture, RecogniserTraining
from tasks.speech.recogniser.training_speech import RecordedSpeech
from tasks.speech.recogniser.units import train_units


@pytest.fixture(scope="module")
def recogniser():
    units = train_units(["the dog and the cat", "a cat and a dog"] * 4, 13, 100)
    features = FeatureSettings(bands=8)
    architecture = RecogniserArchitecture(
        encoding=16, reduction_input=4, layers=1, heads=2, feed_forward=16, predictor_width=16
    )
    model = make_model(architecture, features, len(units) + 1, seed=1).eval()
    description = RecogniserDescription(features=features, architecture=architecture, origin="random", synthetic=True)
    return Recogniser(model, units, FeatureStatistics(torch.zeros(8), torch.ones(8)), description)


def recordings(folder, **seconds):
    generator = np.random.default_rng(1)
    found = []
    for name, length in seconds.items():
        path = folder / f"{name}.wav"
        soundfile.write(path, 0.1 * generator.standard_normal(round(16000 * length)), 16000, subtype="FLOAT")
        found.append(Utterance(name, path, "a dog"))
    return found


def test_all_recordings_that_headers_show_to_be_useless_are_named(recogniser, tmp_path):
    utterances = recordings(tmp_path, good=0.5, empty=0.5, cut=0.5, long=3.0, fine=0.4)
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "cut.wav").write_bytes((tmp_path / "cut.wav").read_bytes()[:5000])
    utterances.append(Utterance("gone", tmp_path / "gone.wav", "a dog"))
    with pytest.raises(SpeechError) as caught:
        encode_utterances(recogniser, utterances, 2.0, 1.0)
    message = str(caught.value)
    assert message.startswith("4 recordings cannot be used: utterance 'empty': audio file")
    for said in ("'cut': audio file", "is cut off", "'long': audio file", "is 3 seconds long", "'gone': audio file"):
        assert said in message
    assert "'good'" not in message
    assert "dog" not in message


def test_streaming_gives_the_frames_of_whole_utterances(recogniser, tmp_path):
    utterances = recordings(tmp_path, long=3.0, middle=0.77, short=0.1, click=0.01)
    whole = encode_utterances(recogniser, utterances, 4.0, 5.0)
    streamed = encode_utterances(recogniser, utterances, 4.0, 5.0, streaming=True)
    assert [len(each) for each in streamed.frames.values()] == [75, 19, 2, 0]
    assert streamed.without_frames == 1
    for name, frames in whole.frames.items():
        torch.testing.assert_close(streamed.frames[name], frames, rtol=0, atol=1e-5)


def test_all_recordings_that_are_damaged_inside_are_named(recogniser, tmp_path):
    """Their headers are in order; one of several batches after the other is read to find them."""
    utterances = recordings(tmp_path, first=0.6, good=0.5, second=0.4)
    for name in ("first", "second"):
        samples, _ = soundfile.read(tmp_path / f"{name}.wav")
        samples[100] = np.nan
        soundfile.write(tmp_path / f"{name}.wav", samples, 16000, subtype="FLOAT")
    with pytest.raises(SpeechError, match=r"^2 recordings cannot be used: utterance 'first'.*NaN.*'second'"):
        encode_utterances(recogniser, utterances, 2.0, 0.7)


def test_training_names_all_damaged_recordings_but_not_those_without_words(tmp_path):
    utterances = recordings(tmp_path, one=0.5, two=0.5, three=0.5, four=0.5)
    for name in ("one", "three", "four"):
        (tmp_path / f"{name}.wav").write_bytes(b"")
    texts = {"one": "a dog", "two": "a cat", "three": "...", "four": "the dog"}
    lines = [
        f'{{"utterance_id": "{each.utterance_id}", "audio": "{each.audio.name}", "text": "{texts[each.utterance_id]}"}}'
        for each in utterances
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(SpeechError) as caught:
        RecordedSpeech(tmp_path / "m.jsonl", FeatureSettings(bands=8), RecogniserTraining())
    message = str(caught.value)
    assert message.startswith("2 recordings cannot be used: utterance 'one'")
    assert "'four'" in message
    assert "'three'" not in message
