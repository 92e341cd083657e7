"""Utterances that a reader found: parts of longer recordings are cut out, and unusable ones are left out by name.

A reader is a generator of utterances, and of ``LeftOut`` for those that its source lacks.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from tasks.errors import SpeechError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.audio_file import audio_facts, open_audio
from tasks.speech.audio.manifest import Utterance

_BEYOND_SECONDS = 0.1
"""Seconds that a segment may end after the end of its recording, since times are rounded."""


class LeftOut(NamedTuple):
    """An utterance that cannot be used."""

    reason: str
    """``no_recording``, ``no_transcript``, ``no_words``, ``unreadable``, ``too_long`` or ``beyond_recording``."""
    utterance_id: str


Found = Iterator[Utterance | LeftOut]
Usable = list[tuple[Utterance, float]]
"""Utterances, and the seconds of their recordings."""


def usable_recordings(
    found: Sequence[Utterance | LeftOut], maximum_seconds: float, segments: Path
) -> tuple[Usable, dict[str, list[str]]]:
    """Usable utterances, and the ids of the others by reason.

    Parts of recordings become FLAC files in the private folder ``segments``, which is replaced as a whole. Left out are
    utterances without words, unreadable or too long ones, and parts outside their recording.
    """
    if any(isinstance(each, Utterance) and each.span for each in found):
        with atomic_folder(segments, private=True) as fresh:
            bar = enumerate(tqdm(found, desc="cutting", disable=None, leave=False))
            found = [_cut(each, fresh / f"{number:07d}.flac", segments, maximum_seconds) for number, each in bar]
    usable: Usable = []
    left_out: dict[str, list[str]] = defaultdict(list)
    for each in tqdm(found, desc="checking", unit=" files", disable=None, leave=False):
        checked = each if isinstance(each, LeftOut) else _checked(each, maximum_seconds)
        if isinstance(checked, LeftOut):
            left_out[checked.reason].append(checked.utterance_id)
        else:
            usable.append(checked)
    return usable, dict(sorted(left_out.items()))


def _checked(utterance: Utterance, maximum_seconds: float) -> tuple[Utterance, float] | LeftOut:
    if not normalise(utterance.text):
        return LeftOut("no_words", utterance.utterance_id)
    try:
        seconds = audio_facts(utterance.audio).seconds
    except SpeechError:
        return LeftOut("unreadable", utterance.utterance_id)
    return LeftOut("too_long", utterance.utterance_id) if seconds > maximum_seconds else (utterance, seconds)


def _cut(one: Utterance | LeftOut, output: Path, segments: Path, maximum_seconds: float) -> Utterance | LeftOut:
    """The utterance with its part of a recording written to a file of its own."""
    import soundfile

    if isinstance(one, LeftOut) or one.span is None:
        return one
    begin, end = one.span
    seconds = end - begin
    if seconds > maximum_seconds:
        return LeftOut("too_long", one.utterance_id)
    try:
        with open_audio(one.audio) as file:
            rate, missing = file.samplerate, end - file.frames / file.samplerate
            outside = one.channel is not None and not 0 <= one.channel < file.channels
            if outside or seconds <= 0 or begin < 0 or missing > min(_BEYOND_SECONDS, seconds / 2):
                return LeftOut("beyond_recording", one.utterance_id)
            file.seek(round(begin * rate))
            samples = file.read(round(seconds * rate), always_2d=True)
            samples = samples if one.channel is None else samples[:, one.channel]
    except (SpeechError, soundfile.LibsndfileError):
        return LeftOut("unreadable", one.utterance_id)
    soundfile.write(output, samples, rate, format="FLAC", subtype="PCM_16")
    output.chmod(PRIVATE_MODE)
    return replace(one, audio=segments.absolute() / output.name, span=None, channel=None)
