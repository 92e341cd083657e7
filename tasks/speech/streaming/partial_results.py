"""Partial results of a recogniser: what is shown of an utterance while it is spoken, how it changes, how late it is.

A recogniser that decodes again and again all that it has heard may take back words. Of each partial result but the last
the last k words are held back (mask-k, Arivazhagan et al. 2020, "Re-translation versus Streaming for Simultaneous
Translation"): what is shown changes less, and comes later. In the end the same words are shown for every k; only where
nothing that was shown is ever taken back (``committed``) does k change what is recognised.

Words are normalised; in Chinese and Japanese they are characters (``mixed_units``), and the mixed error rate is the one
to read. The file of partial results has a line for each utterance, the whole result last:

    {"utterance_id": "u1", "partials": [{"seconds": 0.64, "text": "good"}, {"seconds": 1.3, "text": "good morning"}]}
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tasks.corpora.text_lines import write_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.utterance_lines import fail_with_problems, read_json_lines
from tasks.speech.word_errors.word_errors import mixed_units


class Partial(NamedTuple):
    """What is recognised of the beginning of an utterance."""

    seconds: float
    """Seconds of audio that were heard."""
    words: tuple[str, ...]


def partial(seconds: float, text: str) -> Partial:
    """A partial result from its text."""
    return Partial(seconds, tuple(mixed_units(normalise(text))))


def held_back(partials: Sequence[Partial], words: int | None) -> list[Partial]:
    """What is shown of partial results: all but the last one without their last ``words``; ``None``: without any."""
    ends = [0 if words is None else max(len(each.words) - words, 0) for each in partials]
    return [each._replace(words=each.words[:end]) for each, end in zip(partials[:-1], ends, strict=False)] + [
        partials[-1]
    ]


def committed(shown: Sequence[Partial]) -> list[Partial]:
    """The same where a word that was shown stays: of each partial result only what is longer is added."""
    found: list[Partial] = []
    words: tuple[str, ...] = ()
    for each in shown:
        words += each.words[len(words) :]
        found.append(each._replace(words=words))
    return found


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Words that both begin with."""
    same = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        same += 1
    return same


def erased_words(shown: Sequence[Partial]) -> int:
    """Words that were shown and taken back: each time, those behind what the next result has in common.

    Over the words of the last results, both summed over utterances, it is the normalised erasure (Arivazhagan et al.
    2020), 0 where nothing is taken back.
    """
    return sum(len(one.words) - _common(one.words, next_.words) for one, next_ in pairwise(shown))


def average_lag(shown: Sequence[Partial]) -> float | None:
    """Average lagging in seconds: how much later words are there than if they came evenly from the first moment on.

    Word i of n is there when it and all words before it change no more, after g(i) seconds of T: the mean of
    g(i) - (i - 1) T / n over the words up to the first one that is there at T alone (Ma et al. 2019, "STACL"; the
    moment of the last change is that of Arivazhagan et al. 2020). ``None`` without a word.
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


def read_partials(path: str | Path) -> dict[str, list[tuple[float, str]]]:
    """Seconds heard and text of each partial result, by utterance id.

    Raises ``SpeechError`` that lists the lines which are none.
    """
    found: dict[str, list[tuple[float, str]]] = {}
    problems = []
    for number, record in read_json_lines(path):
        if isinstance(record, str):
            problems.append(f"line {number} {record}")
            continue
        name, partials = record.get("utterance_id"), _pairs(record.get("partials"))
        if not isinstance(name, str) or not name or name in found:
            problems.append(f"line {number} has no 'utterance_id' of its own")
        elif not partials:
            problems.append(f"line {number}: 'partials' needs objects with 'seconds', which do not fall, and 'text'")
        else:
            found[name] = partials
    fail_with_problems(path, problems)
    if not found:
        raise SpeechError(f"{str(path)!r} holds no partial results; give a file of JSON lines")
    return found


def _pairs(partials: object) -> list[tuple[float, str]]:
    """Seconds and texts; none where a part of them is missing, or where time goes back."""
    if not isinstance(partials, list) or not all(isinstance(each, dict) for each in partials):
        return []
    found = [(each.get("seconds"), each.get("text")) for each in partials]
    if not all(type(s) in (int, float) and math.isfinite(s) and s >= 0 and isinstance(t, str) for s, t in found):
        return []
    return found if found == sorted(found, key=lambda each: each[0]) else []


def write_partials(path: str | Path, partials: Mapping[str, Sequence[tuple[float, str]]]) -> None:
    """Write partial results as ``read_partials`` reads them; mode 0600."""
    records = (
        {"utterance_id": name, "partials": [{"seconds": round(s, 3), "text": t} for s, t in of_utterance]}
        for name, of_utterance in partials.items()
    )
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)
