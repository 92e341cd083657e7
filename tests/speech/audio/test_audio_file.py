from collections import Counter

import numpy as np
import pytest
import soundfile
import torch

from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import AudioFacts, audio_facts, read_audio, resample


def tone(rate, seconds=0.5, frequency=440.0, amplitude=0.5):
    return (amplitude * np.sin(2 * np.pi * frequency * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


def test_samples_come_back_from_every_format_and_coding(tmp_path):
    for ending, tolerance in [("wav", 1e-4), ("flac", 1e-4), ("ogg", 0.05), ("aiff", 1e-4), ("nist", 1e-4)]:
        path = tmp_path / f"a.{ending}"
        soundfile.write(path, tone(16000), 16000, format=ending.upper())
        samples = read_audio(path, 16000)
        assert samples.shape == (8000,)
        assert samples.dtype == torch.float32
        assert np.abs(samples.numpy() - tone(16000)).max() < tolerance
        assert audio_facts(path) == AudioFacts(0.5, 16000, 1)
    for subtype in ("PCM_U8", "PCM_24", "FLOAT", "ULAW", "GSM610"):
        soundfile.write(tmp_path / "a.wav", tone(8000), 8000, subtype=subtype)
        samples = read_audio(tmp_path / "a.wav", 8000).numpy()[:4000]
        assert np.corrcoef(samples, tone(8000))[0, 1] > 0.98, subtype


def test_a_tone_stays_the_same_tone_at_another_rate_and_what_is_above_its_limit_is_filtered_out(tmp_path):
    for rate in (8000, 44100, 44101):
        soundfile.write(tmp_path / "a.wav", tone(rate), rate)
        tally = Counter()
        samples = read_audio(tmp_path / "a.wav", 16000, tally=tally).numpy()
        assert len(samples) == 8000
        middle = slice(400, -400)  # the filter rings at the ends
        assert np.abs(samples[middle] - tone(16000)[middle]).max() < 0.01
        assert tally == {"resampled": 1, "mixed_down": 0}
    high = torch.from_numpy(tone(44100, frequency=9000.0))
    assert resample(high, 44100, 16000)[400:-400].abs().max() < 0.01


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_a_file_that_is_cut_off_is_an_error_and_not_a_shorter_recording(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    noise = np.random.default_rng(1).normal(scale=0.1, size=32000)
    soundfile.write(path, noise, 16000, format=ending.upper())
    content = path.read_bytes()
    for share in (0.3, 0.9):
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(SpeechError, match="cut off"):
            read_audio(path, 16000)
        with pytest.raises(SpeechError, match="cut off"):
            audio_facts(path)


def test_a_wav_file_written_to_a_pipe_has_no_length_in_its_header_and_is_read(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(16000), 16000)
    content = bytearray(path.read_bytes())
    position = content.index(b"data") + 4
    content[4:8] = content[position : position + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert len(read_audio(path, 16000)) == 8000


def test_what_cannot_be_used_is_an_error(tmp_path):
    broken = tone(16000)
    broken[7] = np.nan
    soundfile.write(tmp_path / "broken.wav", broken, 16000, subtype="FLOAT")
    soundfile.write(tmp_path / "long.flac", np.zeros(100 * 3 * 3600, dtype=np.int16), 100)
    soundfile.write(tmp_path / "mute.wav", np.zeros(0, dtype=np.float32), 16000)
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_bytes(b"these are no sounds at all " * 50)
    shortened = b"NIST_1A\n   1024\nsample_coding -s26 pcm,embedded-shorten-v2.00\n"
    (tmp_path / "short.wav").write_bytes(shortened.ljust(2048))
    for name, message in [
        ("broken.wav", "no numbers"),
        ("long.flac", "is 10800 seconds long and at most 120 are allowed"),
        ("mute.wav", "holds no samples"),
        ("empty.wav", "is empty"),
        ("text.wav", "is no audio that can be read"),
        ("short.wav", "compressed with shorten"),
        ("none.wav", "does not exist"),
        ("", "is no file"),
    ]:
        with pytest.raises(SpeechError, match=message) as caught:
            read_audio(tmp_path / name, 16000, maximum_seconds=120)
        assert "\n" not in str(caught.value)
        assert "no sounds" not in str(caught.value)
    with pytest.raises(SpeechError, match="10800 seconds"):
        audio_facts(tmp_path / "long.flac", maximum_seconds=120)
    assert audio_facts(tmp_path / "long.flac").seconds == 10800


def test_several_channels_become_their_mean_and_are_counted(tmp_path):
    left, right = tone(16000), tone(16000, frequency=1000.0)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 16000)
    tally = Counter()
    samples = read_audio(tmp_path / "a.wav", 16000, tally=tally)
    assert np.abs(samples.numpy() - (left + right) / 2).max() < 1e-4
    assert tally == {"resampled": 0, "mixed_down": 1}
    assert audio_facts(tmp_path / "a.wav").channels == 2
