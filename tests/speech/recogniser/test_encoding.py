"""Recordings on their way through features and encoder into a file."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from tiny_recogniser import random_recogniser, write_noise

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import read_manifest
from tasks.speech.recogniser.encoded_speech import EncodedSpeech, encode_utterances, read_encoded, write_encoded


@pytest.fixture(scope="module")
def recogniser():
    return random_recogniser()


def test_an_utterance_is_encoded_the_same_in_any_company(recogniser):
    generator = torch.Generator().manual_seed(3)
    utterances = [torch.randn(frames, 8, generator=generator) for frames in (3, 8, 11, 16, 20, 27, 37, 64, 77, 300)]
    alone = [recogniser.encode([one])[0] for one in utterances]
    assert [len(each) for each in alone] == [0, 2, 2, 4, 5, 6, 9, 16, 19, 75]
    for count in (8, 9, 10):
        found = recogniser.encode(utterances[:count])
        for frames, expected in zip(found, alone[:count], strict=True):
            torch.testing.assert_close(frames, expected, rtol=0, atol=1e-5)


def test_an_utterance_without_a_frame_stays_in_its_place(recogniser, tmp_path):
    utterances = read_manifest(write_noise(tmp_path, word=0.4, click=0.01, words=0.8))
    speech, *_ = encode_utterances(recogniser, utterances, 4.0)
    assert {name: len(frames) for name, frames in speech.tensors.items()} == {"word": 10, "click": 0, "words": 20}


def test_all_recordings_that_headers_show_to_be_useless_are_named(recogniser, tmp_path):
    utterances = read_manifest(write_noise(tmp_path, good=0.5, empty=0.5, cut=0.5, long=3.0, gone=0.4))
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "cut.wav").write_bytes((tmp_path / "cut.wav").read_bytes()[:5000])
    (tmp_path / "gone.wav").unlink()
    with pytest.raises(SpeechError) as caught:
        encode_utterances(recogniser, utterances, 2.0)
    message = str(caught.value)
    assert message.startswith("4 recordings cannot be used: utterance 'empty': audio file")
    for said in ("'cut': audio file", "is cut off", "'long': audio file", "is 3 seconds long", "'gone': audio file"):
        assert said in message
    assert "'good'" not in message
    assert "dog" not in message


OTHER = SimpleNamespace(hash="f" * 60)


def write(path, frames):
    write_encoded(path, EncodedSpeech("abc" * 20, {"b-2": 0.1}, synthetic=True, tensors={"b-2": frames}))


def test_encoded_speech_belongs_to_its_recogniser_and_other_files_are_refused(tmp_path):
    write(tmp_path / "x", torch.zeros(2, 2))
    with pytest.raises(SpeechError, match="encoded by the recogniser abcabcabcabc, and this one is ffffffffffff"):
        read_encoded(tmp_path / "x", OTHER)
    (tmp_path / "cut").write_bytes((tmp_path / "x").read_bytes()[:-3])
    save_file({"weight": torch.zeros(1)}, tmp_path / "model")
    for name, message in (("nowhere", "does not exist"), ("cut", "or is damaged"), ("model", "is no encoded speech")):
        with pytest.raises(SpeechError, match=message):
            read_encoded(tmp_path / name, OTHER)
