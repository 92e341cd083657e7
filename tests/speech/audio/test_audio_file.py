import av
import numpy as np
import pytest
import soundfile
import torch

from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import AudioFacts, audio_facts, read_audio

RATE = 16000
MIDDLE = slice(400, -400)
"""The filter rings at the ends."""


def tone(rate=RATE, frequency=440.0):
    return (0.5 * np.sin(2 * np.pi * frequency * np.arange(rate // 2) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("ending", "coding", "tolerance"),
    [
        ("wav", "PCM_16", 1e-4), ("wav", "PCM_24", 1e-4), ("wav", "FLOAT", 1e-4), ("wav", "PCM_U8", 0.01),
        ("wav", "ULAW", 0.05), ("flac", None, 1e-4), ("aiff", None, 1e-4), ("nist", None, 1e-4), ("ogg", None, 0.05),
    ],
)  # fmt: skip
def test_samples_come_back_from_every_format_and_coding(tmp_path, ending, coding, tolerance):
    soundfile.write(tmp_path / f"a.{ending}", tone(), RATE, format=ending.upper(), subtype=coding)
    samples = read_audio(tmp_path / f"a.{ending}", RATE)
    assert (samples.shape, samples.dtype) == ((8000,), torch.float32)
    assert np.abs(samples.numpy() - tone()).max() < tolerance
    assert audio_facts(tmp_path / f"a.{ending}") == AudioFacts(0.5, 1, RATE)


@pytest.mark.parametrize("rate", [8000, 44100])
def test_a_tone_stays_the_same_tone_at_another_rate(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", tone(rate), rate)
    samples = read_audio(tmp_path / "a.wav", RATE).numpy()
    assert len(samples) == 8000
    assert np.abs(samples[MIDDLE] - tone()[MIDDLE]).max() < 0.01


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3", "nist"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_is_cut_off_is_an_error_and_not_a_shorter_recording(tmp_path, ending, share):
    path = tmp_path / f"a.{ending}"
    soundfile.write(path, np.random.default_rng(1).normal(scale=0.1, size=32000), RATE, format=ending.upper())
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    for read in (lambda: read_audio(path, RATE), lambda: audio_facts(path)):
        with pytest.raises(SpeechError, match="cut off"):
            read()


def test_a_wav_file_written_to_a_pipe_has_no_length_in_its_header_and_is_read(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(), RATE)
    content = bytearray(path.read_bytes())
    position = content.index(b"data") + 4
    content[4:8] = content[position : position + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert len(read_audio(path, RATE)) == 8000


def test_what_cannot_be_used_is_an_error(tmp_path):
    broken = tone()
    broken[7] = np.nan
    soundfile.write(tmp_path / "broken.wav", broken, RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "long.flac", np.zeros(100 * 121, dtype=np.int16), 100)
    soundfile.write(tmp_path / "mute.wav", np.zeros(0, dtype=np.float32), RATE)
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.wav").write_bytes(b"these are no sounds at all " * 50)
    for name, message in [
        ("broken.wav", "no numbers"),
        ("long.flac", "is 121 seconds long and at most 120 are allowed"),
        ("mute.wav", "holds no samples"),
        ("empty.wav", "is empty"),
        ("text.wav", "is no audio that can be read"),
        ("none.wav", "does not exist"),
        ("", "is no file"),
    ]:
        with pytest.raises(SpeechError, match=message) as caught:
            read_audio(tmp_path / name, RATE, maximum_seconds=120)
        assert "\n" not in str(caught.value)
        assert "no sounds" not in str(caught.value)


def test_several_channels_become_their_mean(tmp_path):
    left, right = tone(), tone(frequency=1000.0)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), RATE)
    samples = read_audio(tmp_path / "a.wav", RATE)
    assert np.abs(samples.numpy() - (left + right) / 2).max() < 1e-4
    assert audio_facts(tmp_path / "a.wav").channels == 2


def write_aac(path, samples):
    """The same sound on two channels, in the container of the file's ending, with the header first."""
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("aac", rate=RATE, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.stack([samples, samples]), "fltp", "stereo")
        frame.sample_rate = RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)


@pytest.mark.parametrize("name", ["a.m4a", "a.mp4", "a.mkv"])
def test_sound_that_only_ffmpeg_decodes_is_read(tmp_path, name):
    write_aac(tmp_path / name, np.tile(tone(), 4))
    facts = audio_facts(tmp_path / name)
    assert facts.channels == 2
    assert facts.seconds == pytest.approx(2.0, abs=0.2)
    samples = read_audio(tmp_path / name, RATE).numpy()
    assert np.argmax(np.abs(np.fft.rfft(samples))) * RATE / len(samples) == pytest.approx(440.0, abs=2.0)
    assert np.abs(samples[RATE // 2 : RATE]).max() == pytest.approx(0.5, abs=0.05)


def test_a_cut_off_m4a_is_an_error(tmp_path):
    write_aac(tmp_path / "a.m4a", np.tile(tone(), 8))
    content = (tmp_path / "a.m4a").read_bytes()
    for size in range(len(content) // 3, len(content) - 400, 97):
        (tmp_path / "a.m4a").write_bytes(content[:size])
        with pytest.raises(SpeechError, match=r"is (damaged or )?cut off"):
            read_audio(tmp_path / "a.m4a", RATE)
