"""Another sample rate for a signal."""

import math
from functools import cache
from typing import Any

import torch

from tasks.torch_setup import stand_in_for_torchaudio_extension

_LARGEST_FILTER = 1_000_000
"""Taps of torchaudio's bank of filters; odd ratios of rates (44,101 to 16,000 Hz) would need gigabytes."""
_ZERO_CROSSINGS = 16
"""Of the sinc on each side; torchaudio's default of 6 lets a tone 1 kHz above the limit through at a seventh."""


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
def _filter(from_rate: int, to_rate: int) -> Any:
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import Resample

    return Resample(from_rate, to_rate, lowpass_filter_width=_ZERO_CROSSINGS)
