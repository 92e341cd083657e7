from collections import Counter

import numpy as np
import pytest
import soundfile
import torch

from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import AudioFacts, audio_facts, read_audio, resample


def tone(rate, seconds=0.5, frequency=440.0, amplitude=0.5):
    return (amplitude * np.sin(2 * np.pi * frequency * np.arange(round(rate * seconds)) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("ending", "tolerance"), [("wav", 1e-4), ("flac", 1e-4), ("ogg", 0.05), ("aiff", 1e-4), ("nist", 1e-4)]
)
def test_samples_come_back_from_every_format(tmp_path, ending, tolerance):
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, tone(16000), 16000, format=ending.upper())
    samples = read_audio(path, 16000)
    assert samples.shape == (8000,)
    assert samples.dtype == torch.float32
    assert np.abs(samples.numpy() - tone(16000)).max() < tolerance
    assert audio_facts(path) == AudioFacts(0.5, 16000, 1)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "FLOAT", "ULAW", "GSM610"])
def test_samples_come_back_from_every_coding_of_telephones_and_studios(tmp_path, subtype):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(8000), 8000, subtype=subtype)
    samples = read_audio(path, 8000).numpy()[:4000]
    assert np.corrcoef(samples, tone(8000))[0, 1] > 0.98


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 44101, 48000])
def test_a_tone_stays_the_same_tone_at_another_rate(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", tone(rate), rate)
    tally = Counter()
    samples = read_audio(tmp_path / "a.wav", 16000, tally=tally).numpy()
    assert len(samples) == 8000
    middle = slice(400, -400)  # the filter rings at the ends
    assert np.abs(samples[middle] - tone(16000)[middle]).max() < 0.01
    assert tally == {"resampled": 1, "mixed_down": 0}


def test_what_is_above_the_new_rates_limit_is_filtered_out():
    high = torch.from_numpy(tone(44100, frequency=9000.0))
    assert resample(high, 44100, 16000)[400:-400].abs().max() < 0.01


def test_several_channels_become_their_mean_and_are_counted(tmp_path):
    left, right = tone(16000), tone(16000, frequency=1000.0)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 16000)
    tally = Counter()
    samples = read_audio(tmp_path / "a.wav", 16000, tally=tally)
    assert np.abs(samples.numpy() - (left + right) / 2).max() < 1e-4
    assert tally == {"resampled": 0, "mixed_down": 1}
    assert audio_facts(tmp_path / "a.wav").channels == 2


def test_samples_beyond_full_scale_are_limited(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(16000, amplitude=3.0), 16000, subtype="FLOAT")
    assert read_audio(tmp_path / "a.wav", 16000).abs().max() == 1.0


def test_samples_that_are_no_numbers_are_an_error(tmp_path):
    samples = tone(16000)
    samples[7] = np.nan
    soundfile.write(tmp_path / "a.wav", samples, 16000, subtype="FLOAT")
    with pytest.raises(SpeechError, match="no numbers"):
        read_audio(tmp_path / "a.wav", 16000)


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "aiff", "mp3", "nist"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_is_cut_off_is_an_error_and_not_a_shorter_recording(tmp_path, ending, share):
    path = tmp_path / f"a.{ending}"
    noise = np.random.default_rng(1).normal(scale=0.1, size=32000)
    soundfile.write(path, noise, 16000, format=ending.upper())
    content = path.read_bytes()
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


def test_three_hours_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, np.zeros(100 * 3 * 3600, dtype=np.int16), 100)
    with pytest.raises(SpeechError, match="is 10800 seconds long and at most 120 are allowed"):
        read_audio(path, 16000)
    with pytest.raises(SpeechError, match="10800 seconds"):
        audio_facts(path)
    assert audio_facts(path, maximum_seconds=20000).seconds == 10800


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"these are no sounds at all " * 50, "is no audio that can be read"),
        (b"NIST_1A\n   1024\nsample_coding -s26 pcm,embedded-shorten-v2.00\n".ljust(2048), "compressed with shorten"),
    ],
)
def test_what_is_no_audio_is_an_error(tmp_path, content, message):
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(SpeechError, match=message) as caught:
        read_audio(tmp_path / "a.wav", 16000)
    assert "\n" not in str(caught.value)
    assert "no sounds" not in str(caught.value)


def test_files_without_samples_and_missing_files_are_errors(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(0, dtype=np.float32), 16000)
    with pytest.raises(SpeechError, match="holds no samples"):
        read_audio(tmp_path / "a.wav", 16000)
    with pytest.raises(SpeechError, match="does not exist"):
        read_audio(tmp_path / "b.wav", 16000)
    with pytest.raises(SpeechError, match="is no file"):
        read_audio(tmp_path, 16000)
