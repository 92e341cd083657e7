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


FRAMES = {"b-2": torch.tensor([[0.5, -1.0], [2.0, 0.25]]), "a-1": torch.zeros(0, 2)}
SECONDS = {"b-2": 0.1, "a-1": 0.01}


def write(path, frames=FRAMES, **options):
    write_encoded(path, EncodedSpeech("abc" * 20, SECONDS, 0.04, synthetic=True, tensors=frames), **options)


def test_frames_come_back_in_the_order_given(tmp_path):
    write(tmp_path / "x", store="float16")
    found = read_encoded(tmp_path / "x")
    assert found.utterance_ids == ["b-2", "a-1"]
    assert torch.equal(found.frames("b-2"), FRAMES["b-2"])  # these numbers are whole in half precision too
    assert found.frames("a-1").shape == (0, 2)
    assert found.frames("b-2").dtype == torch.float32
    assert (found.seconds, found.frame_seconds, found.synthetic) == (SECONDS, 0.04, True)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
    found.check_recogniser("abc" * 20)
    with pytest.raises(SpeechError, match="encoded by the recogniser abcabcabcabc, and this one is ffffffffffff"):
        found.check_recogniser("f" * 60)


def test_what_is_no_encoded_speech_is_refused_and_what_half_precision_cannot_hold_is_not_written(tmp_path):
    write(tmp_path / "cut")
    (tmp_path / "cut").write_bytes((tmp_path / "cut").read_bytes()[:-3])
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
        write(tmp_path / "x", {"b-2": torch.full((1, 2), 1e6)})
    assert not (tmp_path / "x").exists()
