"""A long recording as windows that Whisper can read, cut where it is quiet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_FRAME_SECONDS = 0.02
_SMOOTHED_FRAMES = 15
"""Frames whose mean loudness counts: a pause between words is longer than the closure of a stop."""
_SEARCHED_SHARE = 1 / 3
"""The last part of a window that is searched for the quietest place."""


def windows_of(samples: "torch.Tensor", longest: int, sample_rate: int) -> "list[torch.Tensor]":
    """The recording (samples,) in pieces of at most ``longest`` samples, without overlap; itself if it is no longer.

    Each cut is at the quietest 0.3 s of the last third of what can still be read.
    """
    parts = []
    while len(samples) > longest:
        cut = _quietest(samples[:longest], sample_rate)
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]


def _quietest(samples: "torch.Tensor", sample_rate: int) -> int:
    """Where in the last part of the samples it is quietest."""
    import torch

    frame = max(1, round(_FRAME_SECONDS * sample_rate))
    begin = int(len(samples) * (1 - _SEARCHED_SHARE))
    searched = samples[begin : begin + (len(samples) - begin) // frame * frame]
    power = searched.reshape(-1, frame).square().mean(1)  # (frames,)
    width = min(_SMOOTHED_FRAMES, len(power))
    smooth = torch.nn.functional.avg_pool1d(power[None, None], width, stride=1)[0, 0]
    return begin + (int(smooth.argmin()) + width // 2) * frame
