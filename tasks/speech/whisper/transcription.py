"""Hypotheses of a recording of any length by Whisper: windows, their search, and the best combinations."""

import warnings
from collections.abc import Iterable, Iterator
from functools import cache

import torch

from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.nbest_lists import ScoredHypothesis
from tasks.speech.whisper.recogniser import SAMPLE_RATE, Search, WhisperRecogniser

_DETECTOR_RATE = 16_000
_MARGIN_MS = 200
"""Sound before and after speech that stays, in milliseconds."""


def windows_of(samples: torch.Tensor, longest: int, sample_rate: int) -> list[torch.Tensor]:
    """The parts of a recording (samples,) with speech, of at most ``longest`` samples; itself if it is no longer.

    Silero's voice detector finds speech. A window has as much of it as fits, and the pauses between. The longer pauses
    around windows are left out: Whisper invents words there.
    """
    if len(samples) <= longest:
        return [samples]
    windows: list[tuple[int, int]] = []
    for start, end in _speech(samples, longest, sample_rate):
        if windows and end - windows[-1][0] <= longest:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return [samples[start:end] for start, end in windows]


def _speech(samples: torch.Tensor, longest: int, sample_rate: int) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of speech, of at most ``longest`` samples."""
    from torchaudio.functional import resample

    detector = _detector()
    from silero_vad import get_speech_timestamps

    found = get_speech_timestamps(
        resample(samples, sample_rate, _DETECTOR_RATE),
        detector,
        sampling_rate=_DETECTOR_RATE,
        max_speech_duration_s=longest / sample_rate,
        speech_pad_ms=_MARGIN_MS,
    )
    for each in found:
        start, end = (each[key] * sample_rate // _DETECTOR_RATE for key in ("start", "end"))
        yield start, min(end, start + longest)  # by rounding alone: the detector counts the margins


@cache
def _detector() -> torch.nn.Module:
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of torch.jit.load, which the package calls
        from silero_vad import load_silero_vad

        detector: torch.nn.Module = load_silero_vad()
    torch.set_num_threads(threads)  # the import sets one
    return detector


def hypotheses_of(
    recogniser: WhisperRecogniser, samples: torch.Tensor, search: Search, at_most: int
) -> tuple[list[ScoredHypothesis], bool]:
    """Hypotheses of a recording (samples,), best first, and whether all of them ended.

    Texts of successive windows are concatenated, and their scores added. Without speech: one hypothesis of no word.
    """
    joined, all_ended = [ScoredHypothesis("", 0.0)], True
    for window in windows_of(samples, recogniser.longest, SAMPLE_RATE):
        found, ended = recogniser.decode(window, search)
        all_ended &= ended
        after = merge_spellings(found)
        pairs = [ScoredHypothesis(f"{a.text} {b.text}".strip(), a.score + b.score) for a in joined for b in after]
        joined = sorted(pairs, key=lambda hypothesis: -hypothesis.score)[:at_most]
    return joined, all_ended


def merge_spellings(hypotheses: Iterable[ScoredHypothesis]) -> list[ScoredHypothesis]:
    """One hypothesis for each sequence of words, with its best score; best first.

    Whisper writes case and punctuation, and many hypotheses of a beam differ in these only.
    """
    best: dict[tuple[str, ...], ScoredHypothesis] = {}
    for hypothesis in sorted(hypotheses, key=lambda one: -one.score):
        best.setdefault(tuple(normalise(hypothesis.text)), hypothesis)
    return list(best.values())
