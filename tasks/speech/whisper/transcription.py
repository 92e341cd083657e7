"""Hypotheses of a recording of any length by Whisper: windows, their search, and the best combinations."""

from collections.abc import Iterable

import torch

from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import ScoredHypothesis
from tasks.speech.whisper.recogniser import SAMPLE_RATE, Search, WhisperRecogniser

_FRAME_SECONDS = 0.02
_SMOOTHED_FRAMES = 15
"""Frames over which loudness is averaged: a pause between words is longer than the closure of a stop."""
_SEARCHED_SHARE = 1 / 3
"""The last part of a window that is searched for the quietest place."""


def windows_of(samples: torch.Tensor, longest: int, sample_rate: int) -> list[torch.Tensor]:
    """The recording (samples,) in pieces of at most ``longest`` samples, without overlap; itself if it is no longer.

    Each cut is at the quietest 0.3 s in the last third of the next window.
    """
    parts = []
    while len(samples) > longest:
        cut = _quietest(samples[:longest], sample_rate)
        parts.append(samples[:cut])
        samples = samples[cut:]
    return [*parts, samples]


def _quietest(samples: torch.Tensor, sample_rate: int) -> int:
    """Position of the quietest place in the last part of the samples."""
    frame = max(1, round(_FRAME_SECONDS * sample_rate))
    begin = int(len(samples) * (1 - _SEARCHED_SHARE))
    searched = samples[begin : begin + (len(samples) - begin) // frame * frame]
    power = searched.reshape(-1, frame).square().mean(1)  # (frames,)
    width = min(_SMOOTHED_FRAMES, len(power))
    smooth = torch.nn.functional.avg_pool1d(power[None, None], width, stride=1)[0, 0]
    return begin + (int(smooth.argmin()) + width // 2) * frame


def hypotheses_of(
    recogniser: WhisperRecogniser, samples: torch.Tensor, search: Search, at_most: int
) -> tuple[list[ScoredHypothesis], bool, int]:
    """Hypotheses of a recording (samples,), best first, whether all of them ended, and its number of windows.

    Texts of successive windows are concatenated, and their scores added.
    """
    joined, all_ended = [ScoredHypothesis("", 0.0)], True
    windows = windows_of(samples, recogniser.longest, SAMPLE_RATE)
    for window in windows:
        found, ended = recogniser.decode(window, search)
        all_ended &= ended
        after = merge_spellings(found)
        pairs = [ScoredHypothesis(f"{a.text} {b.text}".strip(), a.score + b.score) for a in joined for b in after]
        joined = sorted(pairs, key=lambda hypothesis: -hypothesis.score)[:at_most]
    return joined, all_ended, len(windows)


def merge_spellings(hypotheses: Iterable[ScoredHypothesis]) -> list[ScoredHypothesis]:
    """One hypothesis for each sequence of words, with its best score; best first.

    Whisper writes case and punctuation, and many hypotheses of a beam differ in these only.
    """
    best: dict[tuple[str, ...], ScoredHypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda one: -one.score):
        best.setdefault(tuple(normalise(hypothesis.text)), hypothesis)
    return list(best.values())
