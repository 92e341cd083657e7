"""Recordings on their way to the encoder and into a file: those that cannot be used are all named, by headers and by
samples."""

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import save_file
from tiny_recogniser import random_recogniser

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.recogniser.encoded_speech import EncodedSpeech, encode_utterances, read_encoded, write_encoded


@pytest.fixture(scope="module")
def recogniser():
    return random_recogniser()


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
        encode_utterances(recogniser, utterances, 2.0)
    message = str(caught.value)
    assert message.startswith("4 recordings cannot be used: utterance 'empty': audio file")
    for said in ("'cut': audio file", "is cut off", "'long': audio file", "is 3 seconds long", "'gone': audio file"):
        assert said in message
    assert "'good'" not in message
    assert "dog" not in message


def test_streaming_gives_the_frames_of_whole_utterances(recogniser, tmp_path):
    utterances = recordings(tmp_path, long=3.0, middle=0.77, short=0.1, click=0.01)
    whole, *_ = encode_utterances(recogniser, utterances, 4.0)
    streamed, *_ = encode_utterances(recogniser, utterances, 4.0, streaming=True)
    assert [len(each) for each in streamed.tensors.values()] == [75, 19, 2, 0]
    for name, frames in whole.tensors.items():
        torch.testing.assert_close(streamed.tensors[name], frames, rtol=0, atol=1e-5)


def write(path, frames, **options):
    write_encoded(path, EncodedSpeech("abc" * 20, {"b-2": 0.1}, 0.04, synthetic=True, tensors=frames), **options)


def test_encoded_speech_belongs_to_its_recogniser_and_other_files_are_refused(tmp_path):
    write(tmp_path / "x", {"b-2": torch.zeros(2, 2)})
    with pytest.raises(SpeechError, match="encoded by the recogniser abcabcabcabc, and this one is ffffffffffff"):
        read_encoded(tmp_path / "x").check_recogniser("f" * 60)
    (tmp_path / "cut").write_bytes((tmp_path / "x").read_bytes()[:-3])
    (tmp_path / "text").write_text("no tensors")
    save_file({"weight": torch.zeros(1)}, tmp_path / "model")
    for name, message in [
        ("nowhere", "does not exist"),
        ("text", "is damaged"),
        ("cut", "is damaged"),
        ("model", "is no encoded speech"),
    ]:
        with pytest.raises(SpeechError, match=message):
            read_encoded(tmp_path / name)
    with pytest.raises(SpeechError, match="'b-2' is not finite as float16"):
        write(tmp_path / "y", {"b-2": torch.full((1, 2), 1e6)})
    assert not (tmp_path / "y").exists()
