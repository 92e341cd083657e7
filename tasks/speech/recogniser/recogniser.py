"""A recogniser: its network, its units, and how it hears."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tasks.settings.base import Settings
from tasks.speech.recogniser.features import FeatureStatistics, log_mel
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import Units

if TYPE_CHECKING:
    from torchaudio.models import RNNT


class RecogniserDescription(Settings):
    """What a recogniser is, besides its weights, units and statistics."""

    features: FeatureSettings
    architecture: RecogniserArchitecture
    origin: str
    """What its weights come from, in a few words, such as ``trained on synthetic speech``."""
    synthetic: bool
    """Whether it has learned from synthesised speech."""


@dataclass(frozen=True)
class Recogniser:
    """Everything that turns samples into encoded frames, and units into words."""

    model: "RNNT"
    """torchaudio's transducer, in evaluation mode."""
    units: Units
    feature_statistics: FeatureStatistics
    settings: RecogniserDescription
    hash: str = ""
    """SHA-256 over weights, units, statistics and settings; empty before it has been saved."""

    @property
    def frame_seconds(self) -> float:
        """Seconds of speech that one encoded frame stands for."""
        features = self.settings.features
        return features.hop_samples * self.settings.architecture.reduction / features.sample_rate

    def features(self, samples: Tensor) -> Tensor:
        """Normalised features (T, bands) of a signal (samples,) at the recogniser's sample rate."""
        return self.feature_statistics.normalise(log_mel(samples, self.settings.features))

    def encode(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Encoded frames (T', D) of several utterances, each whole (not streaming), from normalised features."""
        from tasks.speech.recogniser.transcription import transcribe

        return transcribe(self.model, features, self.settings.architecture)

    def encode_streaming(self, features: Sequence[Tensor]) -> list[Tensor]:
        """The same up to rounding, each as if it were being spoken: one segment after the other.

        It takes longer, and memory does not grow with the square of the length.
        """
        from tasks.speech.recogniser.transcription import StreamingTranscriber

        stream = StreamingTranscriber(self.model, self.settings.architecture)
        return [torch.cat([stream.feed(each), stream.finish()]) for each in features]
