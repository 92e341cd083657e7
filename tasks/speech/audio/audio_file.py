"""Audio files of any sample rate: WAV, FLAC, OGG, MP3, AIFF and other formats of libsndfile; M4A and the sound of
videos by the libraries of FFmpeg in the package PyAV."""

import io
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from tasks.errors import SpeechError
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    import numpy
    from soundfile import SoundFile
    from torchaudio.transforms import Resample

_ZERO_CROSSINGS = 16
"""Zero crossings of the sinc on each side; torchaudio's 6 pass a tone 1 kHz above the limit at a seventh."""


def resample(samples: torch.Tensor, from_rate: int, to_rate: int) -> torch.Tensor:
    """A float32 signal (samples,) of ``from_rate`` Hz at ``to_rate`` Hz, band-limited; (ceil(samples * ratio),).

    Windowed sinc interpolation; the filter of each pair of rates is made once in a process.
    """
    if from_rate == to_rate or not len(samples):
        return samples
    divisor = math.gcd(from_rate, to_rate)
    return _filter(from_rate // divisor, to_rate // divisor)(samples)


@cache
def _filter(from_rate: int, to_rate: int) -> "Resample":
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import Resample

    return Resample(from_rate, to_rate, lowpass_filter_width=_ZERO_CROSSINGS)


class AudioFacts(NamedTuple):
    """Length, channels and sample rate of an audio file."""

    seconds: float
    channels: int
    sample_rate: int


def audio_facts(path: str | Path, *, maximum_seconds: float = math.inf) -> AudioFacts:
    """Facts of a file; only the last sample is decoded, of M4A and videos all. Raises ``SpeechError`` like
    ``read_audio``, except for damage in the middle and for samples that are not finite."""
    with open_audio(path, maximum_seconds) as file:
        _samples(file, path, file.frames - 1)
        return AudioFacts(file.frames / file.samplerate, file.channels, file.samplerate)


def read_audio(
    path: str | Path, sample_rate: int, *, maximum_seconds: float = math.inf, channel: int | None = None
) -> torch.Tensor:
    """The recording as float32 (samples,), mono, in [-1, 1], at ``sample_rate`` Hz.

    Several channels become their mean, as in players and other recognisers' tools, unless one ``channel`` (from 0) is
    chosen.

    Raises ``SpeechError`` if the file is missing, empty, no audio, truncated, damaged, has samples that are not finite,
    or is longer than ``maximum_seconds`` (by its header, before anything but M4A and videos is decoded).
    """
    with open_audio(path, maximum_seconds) as file:
        samples, rate = _samples(file, path), file.samplerate
    signal = torch.from_numpy(samples.mean(axis=1) if channel is None else samples[:, channel].copy())
    if not torch.isfinite(signal).all():
        raise _unusable(path, "has samples that are no numbers (NaN or infinity); convert it")
    # Floating-point samples and filter ripples can exceed full scale.
    return resample(signal, rate, sample_rate).clamp(-1.0, 1.0)


def _unusable(path: str | Path, why: str) -> SpeechError:
    return SpeechError(f"audio file {str(path)!r} {why}")


def _samples(file: "SoundFile", path: str | Path, begin: int = 0) -> "numpy.ndarray":
    """The samples from ``begin`` on, float32 (samples, channels); ``SpeechError`` if the end cannot be decoded."""
    import soundfile

    try:
        if begin:
            file.seek(begin)
        samples: numpy.ndarray = file.read(dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise _unusable(path, f"is damaged or cut off ({error.error_string}); copy it again") from None
    if begin + len(samples) < file.frames:
        raise _unusable(path, f"is cut off: its header says {file.frames} samples; copy it again")
    return samples


_CHUNK_SIZES = re.compile(r"^\s*(?:data|SSND|FORM|RIFF) : (\d+) \(should be (\d+)\)", re.MULTILINE)
_SPHERE_SAMPLES = re.compile(rb"^sample_count -i (\d+)", re.MULTILINE)
_UNKNOWN_SIZE = 0x7FFFF000
"""Smallest length that programs write into the header of WAV in a pipe, where they cannot know it."""
_NO_END = ("without an End-Of-Stream flag", "lacks an end-of-stream bit", "Junk after the last page")
"""libsndfile's notes on an OGG file that does not end properly."""


def open_audio(path: str | Path, maximum_seconds: float = math.inf) -> "SoundFile":
    """The file open in libsndfile, with a valid header. Raises ``SpeechError`` if the header is not valid."""
    import soundfile

    if not Path(path).is_file():
        raise _unusable(path, "does not exist or is no file")
    if not Path(path).stat().st_size:
        raise _unusable(path, "is empty (0 bytes); copy or record it again")
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, TypeError):  # TypeError: raw samples, which have no header
        file = soundfile.SoundFile(_decoded(path))
    sizes = [tuple(map(int, pair)) for pair in _CHUNK_SIZES.findall(file.extra_info)]
    if file.format == "NIST":  # SPHERE, of whose length libsndfile says nothing
        with open(path, "rb") as stream:
            sizes += [(int(stated), file.frames) for stated in _SPHERE_SAMPLES.findall(stream.read(1024))]
    cut = any(actual < stated < _UNKNOWN_SIZE for stated, actual in sizes)
    seconds, problem = file.frames / file.samplerate, ""
    if cut or any(note in file.extra_info for note in _NO_END):
        problem = "is cut off: it is shorter than its header says, or lacks its end; copy it again"
    elif not file.frames:
        problem = "holds no samples; record it again"
    elif seconds > maximum_seconds:
        problem = (
            f"is {seconds:.0f} seconds long and at most {maximum_seconds:g} are allowed for one utterance; cut it into "
            "utterances, or raise the limit"
        )
    if problem:
        file.close()
        raise _unusable(path, problem)
    return file


_LONGEST_GAP = 0.5
"""Seconds by which sound may be shorter than its header says: encoders add silence that decoders leave out."""
_CONTAINERS = frozenset("aac amr asf m4a matroska mov mp4 webm".split())
"""Containers that libsndfile cannot read and FFmpeg decodes; its guesses at other files may be wrong."""


def _decoded(path: str | Path) -> io.BytesIO:
    """The sound of M4A, a video or another of ``_CONTAINERS`` as WAV in memory.

    Raises ``SpeechError`` if it is none of them, is damaged or has less sound than its header says.
    """
    import av
    import numpy as np
    import soundfile

    no_audio = _unusable(path, "is no audio that can be read; convert it, for example to FLAC")
    try:
        container = av.open(str(path))
    except av.FFmpegError:
        raise no_audio from None
    with container:
        if not _CONTAINERS & set(container.format.name.split(",")) or not container.streams.audio:
            raise no_audio
        stream, planes = container.streams.audio[0], av.AudioResampler(format="fltp")
        try:
            frames = [part for frame in container.decode(stream) for part in planes.resample(frame)]
            frames += planes.resample(None)
        except av.FFmpegError as error:
            raise _unusable(path, f"is damaged or cut off ({error.strerror}); copy it again") from None
        # Of the other containers, FFmpeg estimates the length.
        stated = float((stream.duration or 0) * (stream.time_base or 0)) if "mp4" in container.format.name else 0.0
    if not frames or sum(frame.samples for frame in frames) / stream.rate < stated - _LONGEST_GAP:
        raise _unusable(path, f"is cut off: its header says {stated:.1f} seconds; copy it again")
    samples = np.concatenate([frame.to_ndarray() for frame in frames], axis=1)  # (channels, samples)
    wav = io.BytesIO()
    soundfile.write(wav, samples.T, frames[0].sample_rate, format="WAV", subtype="FLOAT")
    wav.seek(0)
    return wav
