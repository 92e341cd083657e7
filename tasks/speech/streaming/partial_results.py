"""Partial results of a recogniser: the words shown while an utterance is spoken, their changes, and their lag.

A recogniser that repeatedly decodes all audio so far may take back words. The last k words of each partial result but
the last are held back (mask-k, Arivazhagan et al. 2020, "Re-translation versus Streaming for Simultaneous
Translation"): shown words change less and come later. The final words are the same for every k, unless shown words are
never taken back (``committed``).

Words are normalised; in Chinese and Japanese they are characters (``mixed_units``), and the error rate is the mixed
error rate. The file of partial results has a line for each utterance, with the whole result last:

    {"utterance_id": "u1", "partials": [{"seconds": 0.64, "text": "good"}, {"seconds": 1.3, "text": "good morning"}]}
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.corpora.text_lines import finite_number, write_lines
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.utterance_lines import read_records
from tasks.speech.rescoring.settings import WordErrorSettings
from tasks.speech.word_errors.error_counts_file import mean_with_interval, measure_errors
from tasks.speech.word_errors.word_errors import WordGroups, count_errors, mixed_units


class Partial(NamedTuple):
    """A recognition result for the beginning of an utterance."""

    seconds: float
    """Seconds of audio heard."""
    words: tuple[str, ...]


def partial(seconds: float, text: str) -> Partial:
    """A partial result from its text."""
    return Partial(seconds, tuple(mixed_units(normalise(text))))


def held_back(partials: Sequence[Partial], words: int | None) -> list[Partial]:
    """Partial results as shown: all but the last without their last ``words``; ``None``: empty until the last."""
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


def held_back_numbers(
    partials: Mapping[str, Sequence[Partial]],
    words: int | None,
    references: Mapping[str, str],
    groups: WordGroups,
    settings: WordErrorSettings,
) -> dict[str, Any]:
    """Changes and lag if so many last words are held back, and the errors if no shown word is taken back."""
    shown = [held_back(each, words) for each in partials.values()]
    stable = [committed(each) for each in shown]
    found = {name: " ".join(each[-1].words) for name, each in zip(partials, stable, strict=True)}
    erased, final = np.array(list(map(erased_words, shown))), np.array([len(each[-1].words) for each in shown])
    return {
        **mean_with_interval("normalised_erasure", erased, final, settings),
        **_lag(shown, settings),
        "nothing_taken_back": {
            **measure_errors(count_errors(references, found, groups), settings),
            **_lag(stable, settings),
        },
    }


def _lag(shown: Sequence[Sequence[Partial]], settings: WordErrorSettings) -> dict[str, Any]:
    lags = np.array([lag for each in shown if (lag := average_lag(each)) is not None])
    return mean_with_interval("average_lag_seconds", lags, np.ones(len(lags)), settings)


Texts = tuple[tuple[float, str], ...]
"""Seconds heard and text of each partial result."""


def read_partials(path: str | Path) -> dict[str, Texts]:
    """Seconds heard and text of each partial result, by utterance id.

    Raises ``SpeechError`` that lists the lines with another form.
    """
    return read_records(path, _parse, "partial results")


def _parse(record: dict[str, Any]) -> Texts | list[str]:
    """Seconds and texts; a problem if a part is missing or if time decreases."""
    partials = record.get("partials")
    found: list[tuple[float, str]] = []
    for each in partials if isinstance(partials, list) else ():
        seconds, text = (each.get(name) if isinstance(each, dict) else None for name in ("seconds", "text"))
        number = finite_number(seconds)
        if number is None or number < (found[-1][0] if found else 0) or not isinstance(text, str):
            found.clear()
            break
        found.append((number, text))
    return tuple(found) or ["'partials' needs objects with 'seconds', which do not fall, and 'text'"]


def write_partials(path: str | Path, partials: Mapping[str, Sequence[tuple[float, str]]]) -> None:
    """Write partial results as ``read_partials`` reads them; mode 0600."""
    records = (
        {"utterance_id": name, "partials": [{"seconds": round(s, 3), "text": t} for s, t in of_utterance]}
        for name, of_utterance in partials.items()
    )
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)
