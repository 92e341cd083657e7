"""Audio files of any sample rate: WAV, FLAC, OGG, MP3, AIFF and other formats of libsndfile; M4A and the sound of
videos by the libraries of FFmpeg in the package PyAV."""

import io
import math
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from tasks.errors import SpeechError
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from soundfile import SoundFile
    from torchaudio.transforms import Resample

_LARGEST_FILTER = 1_000_000
"""Maximum of taps in torchaudio's filter bank; odd ratios of rates (44,101 to 16,000 Hz) would need gigabytes."""
_ZERO_CROSSINGS = 16
"""Zero crossings of the sinc on each side; torchaudio's 6 pass a tone 1 kHz above the limit at a seventh."""


def resample(samples: torch.Tensor, from_rate: int, to_rate: int) -> torch.Tensor:
    """A float32 signal (samples,) of ``from_rate`` Hz at ``to_rate`` Hz, band-limited; (ceil(samples * ratio),).

    Windowed sinc interpolation; the filter of each pair of rates is made once in a process.
    """
    if from_rate == to_rate or not len(samples):
        return samples
    divisor = math.gcd(from_rate, to_rate)
    up, down = to_rate // divisor, from_rate // divisor
    if up * down <= _LARGEST_FILTER:
        return _filter(down, up)(samples)
    from scipy.signal import resample_poly

    return torch.from_numpy(resample_poly(samples.numpy(), up, down))


@cache
def _filter(from_rate: int, to_rate: int) -> "Resample":
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import Resample

    return Resample(from_rate, to_rate, lowpass_filter_width=_ZERO_CROSSINGS)


_CHUNK_SIZES = re.compile(r"^\s*(?:data|SSND|FORM|RIFF) : (\d+) \(should be (\d+)\)", re.MULTILINE)
_SPHERE_SAMPLES = re.compile(rb"^sample_count -i (\d+)", re.MULTILINE)
_UNKNOWN_SIZE = 0x7FFFF000
"""Smallest length that programs write into the header of WAV in a pipe, where they cannot know it."""
_NO_END = ("without an End-Of-Stream flag", "lacks an end-of-stream bit", "Junk after the last page")
"""libsndfile's notes on an OGG file that does not end properly."""
_LONGEST_GAP = 0.5
"""Seconds by which sound may be shorter than its header says: encoders add silence that decoders leave out."""
_DECODED = frozenset("aac amr asf m4a matroska mov mp4 webm".split())
"""Containers that libsndfile cannot read and FFmpeg decodes; its guesses at other files may be wrong."""


class AudioFacts(NamedTuple):
    """Facts from the header of an audio file."""

    seconds: float
    sample_rate: int
    """Samples of each channel per second."""
    channels: int


def audio_facts(path: str | Path, *, maximum_seconds: float = math.inf) -> AudioFacts:
    """Length, sample rate and channels; only the last sample is decoded, of M4A and videos all. Raises ``SpeechError``
    like ``read_audio``, except for damage in the middle and for samples that are not finite."""
    import soundfile

    with open_audio(path, maximum_seconds) as file:
        with suppress(soundfile.LibsndfileError):
            file.seek(file.frames - 1)
            if len(file.read(1)):
                return AudioFacts(file.frames / file.samplerate, file.samplerate, file.channels)
        raise SpeechError(
            f"audio file {str(path)!r} is cut off: its header says {file.frames} samples and the last cannot be read; "
            "copy it again"
        )


def read_audio(
    path: str | Path,
    sample_rate: int,
    *,
    maximum_seconds: float = math.inf,
    tally: Counter[str] | None = None,
    channel: int | None = None,
) -> torch.Tensor:
    """The recording as float32 (samples,), mono, in [-1, 1], at ``sample_rate`` Hz.

    Several channels become their mean, as in players and other recognisers' tools, unless one ``channel`` (from 0) is
    chosen. ``tally`` counts recordings that are ``mixed_down``, ``resampled``, and resampled from a lower rate,
    ``narrow_band``.

    Raises ``SpeechError`` if the file is missing, empty, no audio, truncated, damaged, has samples that are not finite,
    or is longer than ``maximum_seconds`` (by its header, before anything but M4A and videos is decoded).
    """
    import soundfile

    with open_audio(path, maximum_seconds) as file:
        try:
            samples = file.read(file.frames, dtype="float32", always_2d=True)  # (samples, channels)
        except soundfile.LibsndfileError as error:
            raise SpeechError(f"audio file {str(path)!r} is damaged or cut off ({error.error_string})") from None
        if len(samples) < file.frames:
            raise SpeechError(
                f"audio file {str(path)!r} is cut off: its header says {file.frames} samples and it has "
                f"{len(samples)}; copy it again"
            )
        rate, channels = file.samplerate, file.channels
    mixed = channels > 1 and channel is None
    signal = torch.from_numpy(samples.mean(axis=1) if mixed else samples[:, channel or 0].copy())
    if not torch.isfinite(signal).all():
        raise SpeechError(f"audio file {str(path)!r} has samples that are no numbers (NaN or infinity); convert it")
    if tally is not None:
        tally["mixed_down"] += mixed
        tally["resampled"] += rate != sample_rate
        tally["narrow_band"] += rate < sample_rate
    # Floating-point samples and filter ripples can exceed full scale.
    return resample(signal, rate, sample_rate).clamp(-1.0, 1.0)


def open_audio(path: str | Path, maximum_seconds: float = math.inf) -> "SoundFile":
    """The file open in libsndfile, with a valid header. Raises ``SpeechError`` if the header is not valid."""
    import soundfile

    name = repr(str(path))
    if not Path(path).is_file():
        raise SpeechError(f"audio file {name} does not exist or is no file")
    if not Path(path).stat().st_size:
        raise SpeechError(f"audio file {name} is empty (0 bytes); copy or record it again")
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, TypeError):  # TypeError: raw samples, which have no header
        decoded = _decoded(path)
        if decoded is None:
            why = ": it is NIST SPHERE compressed with shorten" if is_shortened(path) else ""
            raise SpeechError(
                f"audio file {name} is no audio that can be read{why}; convert it, for example to FLAC"
            ) from None
        file = soundfile.SoundFile(decoded)
    if problem := _header_problem(file, maximum_seconds):
        file.close()
        raise SpeechError(f"audio file {name} {problem}")
    return file


def _decoded(path: str | Path) -> io.BytesIO | None:
    """The sound of M4A, a video or another of ``_DECODED`` as WAV in memory; ``None`` if the file is none of them.

    Raises ``SpeechError`` if it is damaged or has less sound than its header says.
    """
    import av
    import numpy as np
    import soundfile

    try:
        container = av.open(str(path))
    except av.FFmpegError:
        return None
    with container:
        if not _DECODED & set(container.format.name.split(",")) or not container.streams.audio:
            return None
        stream, planes = container.streams.audio[0], av.AudioResampler(format="fltp")
        try:
            frames = [part for frame in container.decode(stream) for part in planes.resample(frame)]
            frames += planes.resample(None)
        except av.FFmpegError as error:
            raise SpeechError(f"audio file {str(path)!r} is damaged or cut off ({error.strerror})") from None
        # Of the other containers, FFmpeg estimates the length.
        stated = float((stream.duration or 0) * (stream.time_base or 0)) if "mp4" in container.format.name else 0.0
    seconds = sum(frame.samples for frame in frames) / stream.rate
    if not frames or seconds < stated - _LONGEST_GAP:
        raise SpeechError(
            f"audio file {str(path)!r} is cut off: its header says {stated:.1f} seconds and it has {seconds:.1f}; "
            "copy it again"
        )
    samples = np.concatenate([frame.to_ndarray() for frame in frames], axis=1)  # (channels, samples)
    wav = io.BytesIO()
    soundfile.write(wav, samples.T, frames[0].sample_rate, format="WAV", subtype="FLOAT")
    wav.seek(0)
    return wav


def is_shortened(path: str | Path) -> bool:
    """Whether a NIST SPHERE file is compressed with shorten; its beginning is like that of a readable one."""
    with open(path, "rb") as stream:
        header = stream.read(1024)
    return header.startswith(b"NIST_1A") and b"shorten" in header


def _header_problem(file: "SoundFile", maximum_seconds: float) -> str | None:
    for stated, actual in _CHUNK_SIZES.findall(file.extra_info):
        if int(actual) < int(stated) < _UNKNOWN_SIZE:
            return f"is cut off: its header says {stated} bytes and it has {actual}; copy it again"
    if file.format == "NIST":
        with open(file.name, "rb") as stream:
            stated_samples = _SPHERE_SAMPLES.search(stream.read(1024))
        if stated_samples and file.frames < int(stated_samples.group(1)):
            return f"is cut off: its header says {stated_samples.group(1).decode()} samples and it has {file.frames}"
    if any(note in file.extra_info for note in _NO_END):
        return "is cut off: it ends without the mark of its end; copy it again, or encode it again"
    if not file.frames:
        return "holds no samples; record it again"
    seconds = file.frames / file.samplerate
    if seconds > maximum_seconds:
        return (
            f"is {seconds:.0f} seconds long and at most {maximum_seconds:g} are allowed for one utterance; cut it into "
            "utterances, or raise the limit"
        )
    return None
