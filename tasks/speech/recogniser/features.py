"""Log-mel features of speech, their statistics, and batches of them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from tasks.errors import SpeechError
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.torch_setup import stand_in_for_torchaudio_extension

_GAIN = float(torch.iinfo(torch.int16).max) ** 2
"""Power of a full-scale wave of 16-bit numbers: torchaudio's pipelines scale the spectrogram so."""
_SMALLEST_DEVIATION = 1e-5


@dataclass(frozen=True)
class FeatureStatistics:
    """Mean and inverse standard deviation of each band over the training speech; float32 (bands,)."""

    mean: Tensor
    inverse_deviation: Tensor

    def normalise(self, features: Tensor) -> Tensor:
        """Features (T, bands) with mean 0 and deviation 1 over the training speech."""
        return (features - self.mean) * self.inverse_deviation


def log_mel(samples: Tensor, settings: FeatureSettings) -> Tensor:
    """Log-mel features (T, bands) of a signal (samples,) in [-1, 1], one frame every ``hop_samples``; float32.

    The logarithm gives way to a line where there is next to no energy, so that silence has no large negative values.
    Raises ``SpeechError`` where the signal is shorter than half a window.
    """
    if samples.dim() != 1 or len(samples) <= settings.window_samples // 2:
        raise SpeechError(
            f"a recording of {samples.numel()} samples is too short for features; it needs more than "
            f"{settings.window_samples // 2}"
        )
    energies = _mel_spectrogram(settings)(samples).transpose(0, 1) * _GAIN  # (T, bands)
    logarithms = torch.where(energies > math.e, energies.clamp(min=math.e).log(), energies)
    # torchaudio divides by e what is small after the logarithm: energies up to e^e, not up to e. Published weights
    # have learned from features with that jump.
    return torch.where(logarithms > math.e, logarithms, logarithms / math.e)


@cache
def _mel_spectrogram(settings: FeatureSettings) -> Callable[[Tensor], Tensor]:
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import MelSpectrogram

    return MelSpectrogram(
        sample_rate=settings.sample_rate,
        n_fft=settings.window_samples,
        hop_length=settings.hop_samples,
        n_mels=settings.bands,
    )


def feature_statistics(utterances: Iterable[Tensor]) -> FeatureStatistics:
    """Statistics of the features (T, bands) of utterances, summed in float64.

    Raises ``SpeechError`` where there is none, or where a band never changes.
    """
    frames, total, squares = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    for features in utterances:
        values = features.double()
        frames += len(values)
        total = total + values.sum(0)
        squares = squares + values.square().sum(0)
    if frames < 2:
        raise SpeechError("there is no speech to take the features' mean and deviation from")
    mean = total / frames
    deviation = (squares / frames - mean.square()).clamp(min=0).sqrt()
    if float(deviation.min()) < _SMALLEST_DEVIATION:
        raise SpeechError("a band of the training speech never changes; is all of it silence?")
    return FeatureStatistics(mean.float(), (1 / deviation).float())


def pad_features(utterances: Sequence[Tensor], architecture: RecogniserArchitecture) -> tuple[Tensor, Tensor]:
    """Normalised features (T, bands) of several utterances as a batch (B, T', bands), and their lengths (B,).

    ``T'`` is a whole number of segments, and the encoder's right context behind it. Padding is 0, the mean.
    """
    lengths = torch.tensor([len(features) for features in utterances])
    segment = architecture.segment_frames
    longest = -(-int(lengths.max()) // segment) * segment + architecture.right_context_frames
    batch = torch.zeros(len(utterances), longest, utterances[0].shape[1])
    for row, features in zip(batch, utterances, strict=True):
        row[: len(features)] = features
    return batch, lengths
