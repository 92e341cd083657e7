"""A recogniser: its network, units and features."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor

from tasks.errors import SpeechError
from tasks.settings.base import Settings
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import Units
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from torchaudio.models import RNNT


_GAIN = float(torch.iinfo(torch.int16).max) ** 2
"""Power of a full-scale wave of 16-bit numbers, the scale of the spectrogram in torchaudio's pipelines."""
_SMALLEST_DEVIATION = 1e-5


@dataclass(frozen=True)
class FeatureStatistics:
    """Mean and inverse standard deviation of each band over the training speech; float32 (bands,)."""

    mean: Tensor
    inverse_deviation: Tensor

    def normalise(self, features: Tensor) -> Tensor:
        """Features (T, bands) with mean 0 and deviation 1 over the training speech."""
        return (features - self.mean) * self.inverse_deviation

    @classmethod
    def of(cls, utterances: Iterable[Tensor]) -> "FeatureStatistics":
        """Statistics of the features (T, bands) of utterances, summed in float64.

        Raises ``SpeechError`` if there is no utterance, or if a band is constant.
        """
        frames, total, squares = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        for features in utterances:
            values = features.double()
            frames += len(values)
            total = total + values.sum(0)
            squares = squares + values.square().sum(0)
        if frames < 2:
            raise SpeechError("there is no training speech; the features' mean and deviation need some")
        mean = total / frames
        deviation = (squares / frames - mean.square()).clamp(min=0).sqrt()
        if float(deviation.min()) < _SMALLEST_DEVIATION:
            raise SpeechError("a band of the training speech never changes; is all of it silence?")
        return cls(mean.float(), (1 / deviation).float())


def log_mel(samples: Tensor, settings: FeatureSettings) -> Tensor:
    """Log-mel features (T, bands) of a signal (samples,) in [-1, 1], one frame every ``hop_samples``; float32.

    At very low energy the logarithm is replaced by a line, so that silence has no large negative values. The signal is
    longer than half a window.
    """
    energies = _mel_spectrogram(settings)(samples).transpose(0, 1) * _GAIN  # (T, bands)
    logarithms = torch.where(energies > math.e, energies.clamp(min=math.e).log(), energies)
    # torchaudio divides by e whatever is small after the logarithm: energies up to e^e, not up to e. Published weights
    # were trained on features with that jump.
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


def pad_features(utterances: Sequence[Tensor], architecture: RecogniserArchitecture) -> tuple[Tensor, Tensor]:
    """Normalised features (T, bands) of several utterances as a batch (B, T', bands), and their lengths (B,).

    ``T'`` is a whole number of segments, followed by the encoder's right context. Padding is 0, the mean.
    """
    lengths = torch.tensor([len(features) for features in utterances])
    segment = architecture.segment_frames
    longest = -(-int(lengths.max()) // segment) * segment + architecture.right_context_frames
    batch = torch.zeros(len(utterances), longest, utterances[0].shape[1])
    for row, features in zip(batch, utterances, strict=True):
        row[: len(features)] = features
    return batch, lengths


def make_model(architecture: RecogniserArchitecture, features: FeatureSettings, symbols: int, seed: int = 0) -> "RNNT":
    """A network with new weights, determined by ``seed``; ``symbols`` includes the blank, which is the last."""
    stand_in_for_torchaudio_extension()
    from torchaudio.models.rnnt import emformer_rnnt_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return emformer_rnnt_model(
            input_dim=features.bands,
            encoding_dim=architecture.encoding,
            num_symbols=symbols,
            segment_length=architecture.segment_frames,
            right_context_length=architecture.right_context_frames,
            time_reduction_input_dim=architecture.reduction_input,
            time_reduction_stride=architecture.reduction,
            transformer_num_heads=architecture.heads,
            transformer_ffn_dim=architecture.feed_forward,
            transformer_num_layers=architecture.layers,
            transformer_dropout=architecture.dropout,
            transformer_activation="gelu",
            transformer_left_context_length=architecture.left_context_frames,
            transformer_max_memory_size=architecture.memory,
            transformer_weight_init_scale_strategy="depthwise",
            transformer_tanh_on_mem=True,
            symbol_embedding_dim=architecture.predictor_width,
            num_lstm_layers=architecture.predictor_layers,
            lstm_layer_norm=architecture.predictor_norm,
            lstm_layer_norm_epsilon=1e-3,
            lstm_dropout=architecture.predictor_dropout,
        )


class RecogniserDescription(Settings):
    """Description of a recogniser: everything except its weights, units and statistics."""

    features: FeatureSettings
    architecture: RecogniserArchitecture
    origin: str
    """Short description of the weights' origin, such as ``trained on synthetic speech``."""
    synthetic: bool
    """Whether it was trained on synthesised speech."""
    unit_languages: list[str] = Field(default=[], exclude_if=lambda languages: not languages)
    """Languages of the blocks of units, in order; empty: units of one language, or shared by all languages."""


@dataclass(frozen=True)
class Recogniser:
    """A recogniser, from samples to encoded frames and from units to words."""

    model: "RNNT"
    """torchaudio's transducer, in evaluation mode."""
    units: Units
    feature_statistics: FeatureStatistics
    settings: RecogniserDescription
    hash: str = ""
    """SHA-256 of weights, units, statistics and settings; empty before it is saved."""

    @property
    def frame_seconds(self) -> float:
        """Seconds of speech in one encoded frame."""
        features = self.settings.features
        return features.hop_samples * self.settings.architecture.reduction / features.sample_rate

    def features(self, samples: Tensor) -> Tensor:
        """Normalised features (T, bands) of a signal (samples,) at the recogniser's sample rate."""
        return self.feature_statistics.normalise(log_mel(samples, self.settings.features))

    def encode(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Encoded frames (T', D) of several utterances, from normalised features."""
        return transcribe(self.model, features, self.settings.architecture)


@torch.no_grad()
def transcribe(model: "RNNT", features: Sequence[Tensor], architecture: RecogniserArchitecture) -> list[Tensor]:
    """Encoded frames (T', D) of whole utterances, from normalised features (T, bands); ``T' = T // reduction``.

    An utterance with fewer frames than ``reduction`` has no encoded frame.
    """
    batch, lengths = pad_features(features, architecture)
    # Lengths in whole segments: the amount of padding that torchaudio's encoder masks after a shorter utterance depends
    # on the longest utterance of the batch. For a single utterance, or in a stream, it masks none.
    segments = -(-lengths // architecture.segment_frames) * architecture.segment_frames
    device = next(model.parameters()).device
    encoded, _ = model.transcribe(batch.to(device), segments.to(device))
    frames = (lengths // architecture.reduction).tolist()
    return [row[:length].cpu() for row, length in zip(encoded, frames, strict=True)]
