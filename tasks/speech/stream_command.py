"""Measure partial results of a recogniser while speech is spoken: changes, lag and word errors.

A live recogniser decodes all audio so far again and again (setting step_seconds). So words are
shown, and may be taken back later. If the last k words are held back (setting held_back), less is
taken back, and all words come later. The report has three figures for each k, with confidence
intervals. The normalised erasure is words taken back, divided by words of the final results. The
average lag is in seconds. Word errors and lag are also measured if no shown word is taken back.
--sidecar adds recognition of masked words, the setting word_errors.languages by the distance to a
switch of language. The speech is a file of 'palimpsest encode-speech'.

example:
  palimpsest stream --recogniser models/recogniser --encoded test.safetensors --references test/manifest.jsonl
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from tasks.command import StageCommand
from tasks.language_model.normalisation import normalise
from tasks.options import READ
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import SearchSettings, WordErrorSettings
from tasks.speech.word_errors.error_report import error_warnings, mean_with_interval, measure_errors, shown_rate
from tasks.speech.word_errors.references import read_references
from tasks.speech.word_errors.word_error_rate_command import ErrorFiles
from tasks.speech.word_errors.word_errors import count_errors, mixed_units

if TYPE_CHECKING:
    from tasks.speech.recogniser.encoded_speech import EncodedSpeech
    from tasks.speech.recogniser.recogniser import Recogniser

SUMMARY = "measure partial results while speech is being spoken: changes, lag and word errors"


class StreamSettings(Settings):
    """Decoding of speech while it is spoken, and numbers of words held back."""

    step_seconds: float = Field(default=0.32, gt=0)
    """Seconds of audio from one partial result to the next."""
    held_back: list[Annotated[int, Field(ge=0)]] = Field(default=[0, 1, 2, 5, 10], min_length=1)
    """Numbers of last words that are held back; holding back all words is measured too."""
    search: SearchSettings = SearchSettings()
    word_errors: WordErrorSettings = WordErrorSettings()


class StreamFiles(ErrorFiles):
    """Encoded speech, its recogniser and the references."""

    references: Annotated[str, READ]
    """manifest or n-best lists with the references"""
    recogniser: Annotated[str, READ]
    """recogniser that encoded the speech"""
    encoded: Annotated[str, READ]
    """encoded speech to decode"""


class Partial(NamedTuple):
    """A recognition result for the beginning of an utterance."""

    seconds: float
    """Seconds of audio heard."""
    words: tuple[str, ...]


def partial(seconds: float, text: str) -> Partial:
    """A partial result from its text, normalised; words in Chinese and Japanese are characters (``mixed_units``)."""
    return Partial(seconds, tuple(mixed_units(normalise(text))))


def held_back(partials: Sequence[Partial], words: int | None) -> list[Partial]:
    """Partial results as shown: all but the last without their last ``words``; ``None``: empty until the last.

    Shown words change less and come later (mask-k, Arivazhagan et al. 2020, "Re-translation versus Streaming for
    Simultaneous Translation"). The final words are the same for every k, unless shown words stay (``committed``).
    """
    *before, last = partials
    shown = [each.words[: 0 if words is None else max(len(each.words) - words, 0)] for each in before]
    return [*(each._replace(words=of) for each, of in zip(before, shown, strict=True)), last]


def committed(shown: Sequence[Partial]) -> list[Partial]:
    """Partial results in which shown words stay: each result only adds the words beyond those already shown."""
    found: list[Partial] = []
    words: tuple[str, ...] = ()
    for each in shown:
        words += each.words[len(words) :]
        found.append(each._replace(words=words))
    return found


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the common prefix in words."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


def erased_words(shown: Sequence[Partial]) -> int:
    """Number of words that were shown and taken back: each time, the words after the prefix common to the next result.

    Divided by the number of final words, both summed over utterances, this is the normalised erasure (Arivazhagan et
    al. 2020), 0 if nothing is taken back.
    """
    return sum(len(one.words) - _common(one.words, next_.words) for one, next_ in pairwise(shown))


def average_lag(shown: Sequence[Partial]) -> float | None:
    """Average lagging in seconds: the mean delay of words, compared with words that come evenly from the start.

    Word i of n counts as shown when it and all earlier words change no more, after g(i) seconds of T. The lag is the
    mean of g(i) - (i - 1) T / n over the words up to the first one that is shown only at T (Ma et al. 2019, "STACL";
    the time of the last change is from Arivazhagan et al. 2020). ``None`` without a word.
    """
    *_, last = shown
    if not last.words:
        return None
    stable = len(last.words)
    there = [last.seconds] * stable
    for each in reversed(shown):
        stable = min(stable, _common(each.words, last.words))
        there[:stable] = [each.seconds] * stable
    lags = []
    for place, seconds in enumerate(there):
        lags.append(seconds - place * last.seconds / len(there))
        if seconds >= last.seconds:
            break
    return sum(lags) / len(lags)


def stream(settings: StreamSettings, files: StreamFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Decode, hold back words and measure; ``--counts`` has the errors of the whole results."""
    from tasks.speech.recogniser.encoded_speech import read_encoded
    from tasks.speech.recogniser.recogniser import load_recogniser
    from tasks.torch_setup import set_up_torch

    references, sampling = read_references(files.references), settings.word_errors
    groups = files.word_groups(references, files.references, sampling)
    set_up_torch(resources.threads)
    recogniser = load_recogniser(files.recogniser)
    speech = read_encoded(files.encoded, recogniser)
    texts = decoded(recogniser, speech, settings)
    ends = {name: of[-1][1] for name, of in texts.items()}
    measured = measure_errors(files.count(references, ends, groups), sampling)
    partials = {name: [partial(*each) for each in of] for name, of in texts.items()}
    measured |= {"synthetic_speech": speech.synthetic, "held_back": {}}
    shown = []
    for words in (*settings.held_back, None):
        rows = [held_back(each, words) for each in partials.values()]
        stable = [committed(each) for each in rows]
        found = {name: " ".join(each[-1].words) for name, each in zip(partials, stable, strict=True)}
        erased, final = np.array(list(map(erased_words, rows))), np.array([len(each[-1].words) for each in rows])
        errors = measure_errors(count_errors(references, found, groups), sampling)
        name = "all" if words is None else str(words)
        numbers = measured["held_back"][name] = {
            **mean_with_interval("normalised_erasure", erased, final, sampling),
            **_lag(rows, sampling),
            "nothing_taken_back": {**errors, **_lag(stable, sampling)},
        }
        erasure, lag = (numbers[key] for key in ("normalised_erasure", "average_lag_seconds"))
        shown.append(
            f"words held back: {name}; normalised erasure {'undefined' if erasure is None else f'{erasure:.3f}'}, "
            f"average lag {'undefined' if lag is None else f'{lag:.2f} s'}; nothing taken back: word error rate "
            f"{shown_rate(errors)}"
        )
    report = Report(measured, error_warnings(measured), sampling.seed, "\n".join(shown))
    if speech.synthetic:
        report.warn("the speech is synthesised; its numbers do not hold for recorded speech")
    return report


def _lag(shown: Sequence[Sequence[Partial]], settings: WordErrorSettings) -> dict[str, Any]:
    lags = np.array([lag for each in shown if (lag := average_lag(each)) is not None])
    return mean_with_interval("average_lag_seconds", lags, np.ones(len(lags)), settings)


def decoded(
    recogniser: "Recogniser", speech: "EncodedSpeech", settings: StreamSettings
) -> dict[str, list[tuple[float, str]]]:
    """Seconds heard and the text of the best hypothesis, for each beginning of each utterance.

    A beginning is whole segments of the encoder whose right context was heard too, and all frames at the end.
    """
    from tasks.speech.search.beam_search import beam_search

    architecture, features = recogniser.settings.architecture, recogniser.settings.features
    segment, step = architecture.segment_frames, settings.step_seconds
    beginnings: list[tuple[str, float]] = []
    encoded = []
    for (name, seconds), frames in zip(speech.seconds.items(), speech.frames, strict=True):
        for heard in (number * step for number in range(1, int(seconds / step) + 1)):
            samples = heard * features.sample_rate - features.window_samples // 2
            known = int(samples // features.hop_samples) + 1 - architecture.right_context_frames
            if heard < seconds:
                beginnings.append((name, heard))
                encoded.append(frames[: max(known // segment, 0) * segment // architecture.reduction])
        beginnings.append((name, seconds))
        encoded.append(frames)
    units, best = recogniser.units, settings.search.model_copy(update={"nbest": 1})
    found: dict[str, list[tuple[float, str]]] = {}
    hypotheses = beam_search(recogniser.model, units.blank, encoded, best)
    for (name, heard), (first, *_) in zip(beginnings, hypotheses, strict=True):
        found.setdefault(name, []).append((heard, units.decode(first.units)))
    return found


COMMAND = StageCommand("stream", stream, StreamSettings, StreamFiles, section={}, labels=("dataset",))
