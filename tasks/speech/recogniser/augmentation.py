"""SpecAugment: stretches of time and bands of frequency are hidden from the recogniser while it learns."""

import numpy as np
from torch import Tensor

from tasks.speech.recogniser.settings import AugmentationSettings


def hide_parts(features: Tensor, settings: AugmentationSettings, generator: np.random.Generator) -> Tensor:
    """A copy of normalised features (T, bands) with some bands and stretches set to 0, the mean.

    Source: Park and others, SpecAugment (2019), without time warping.
    """
    features = features.clone()
    frames, bands = features.shape
    for _ in range(settings.frequency_masks):
        start, width = _stretch(bands, min(settings.frequency_width, bands), generator)
        features[:, start : start + width] = 0
    longest = min(settings.time_width, int(settings.time_share * frames))
    for _ in range(settings.time_masks):
        start, width = _stretch(frames, longest, generator)
        features[start : start + width] = 0
    return features


def _stretch(size: int, longest: int, generator: np.random.Generator) -> tuple[int, int]:
    width = int(generator.integers(0, longest + 1))
    return int(generator.integers(0, size - width + 1)), width
