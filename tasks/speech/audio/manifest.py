"""Manifests of recordings with their words: JSON lines, one utterance a line.

    {"utterance_id": "19-198-0000", "audio": "19-198-0000.flac", "text": "NORTHANGER ABBEY", "speaker": "19"}

``audio`` is relative to the manifest's folder, so that a folder with its manifest can be moved. Optional keys are
``speaker``, ``"synthetic": true`` (the recording was synthesised from its text) and ``languages``, a letter or code for
each white-space word of the text. Other keys are ignored.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from tqdm import tqdm

from tasks.corpora.text_lines import line_writer
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.languages.labelled_words import labels_of
from tasks.speech.audio.audio_file import AudioFacts, audio_facts
from tasks.speech.audio.utterance_lines import problem_list, read_records


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recorded utterance and its words."""

    utterance_id: str
    audio: Path
    """Absolute path of the file, in real folders; if the file itself is a link, the link."""
    text: str
    """The spoken words as transcribed: cased and punctuated or not."""
    speaker: str | None = None
    synthetic: bool = False
    """Whether the recording was synthesised from the text."""
    languages: tuple[str | None, ...] | None = None
    """A letter or code for each white-space word of the text, if given."""
    span: tuple[float, float] | None = None
    """Start and end in its recording in seconds, if it is still to be cut out."""
    channel: int | None = None
    """The channel of its recording (from 0), if it is one of several; it has a span, too."""


def read_manifest(path: str | Path) -> list[Utterance]:
    """The utterances in the manifest's order.

    Raises ``SpeechError`` that lists all problems: lines that are no JSON objects, missing keys, values of the wrong
    type, duplicate ids, absolute paths, missing audio files, and a manifest without any utterance.
    The text of an utterance is never quoted.
    """
    folder = _located(Path(path)).parent
    return list(read_records(path, partial(_parse, folder), "manifest").values())


def write_manifest(path: str | Path, utterances: Iterable[Utterance]) -> None:
    """Write the utterances with paths relative to the manifest's folder.

    The manifest has mode 0600. Missing audio files are no error here.
    """
    folder = _located(Path(path)).parent
    with line_writer(path, private=True) as stream:
        for utterance in utterances:
            audio = Path(os.path.relpath(_located(utterance.audio), folder)).as_posix()
            entry: dict[str, Any] = {"utterance_id": utterance.utterance_id, "audio": audio, "text": utterance.text}
            entry |= {key: value for key in ("speaker", "synthetic", "languages") if (value := getattr(utterance, key))}
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _located(path: Path) -> Path:
    """The file in its real folder. A link to a file, as in the folders that DVC checks out, is not resolved: its target
    is in a cache, without its name and its neighbours."""
    return path.parent.resolve() / path.name


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "audio": ((str,), "text"),
    "text": ((str,), "text"),
    "speaker": ((str, int, type(None)), "text"),
    "synthetic": ((bool,), "true or false"),
}


def _parse(folder: Path, entry: dict[str, Any]) -> Utterance | list[str]:
    problems = [f"has no {key!r}" for key in ("audio", "text") if key not in entry]
    problems += [
        f"{key!r} is not {what} but {type(entry[key]).__name__}"
        for key, (kinds, what) in _KINDS.items()
        if key in entry and type(entry[key]) not in kinds
    ]
    speaker, languages, audio = entry.get("speaker"), entry.get("languages"), entry.get("audio")
    if languages is not None and labels_of(str(entry.get("text")), languages) is None:
        problems.append("'languages' needs a letter or code for each word of the text")
    if isinstance(audio, str):
        if PurePosixPath(audio).is_absolute() or PureWindowsPath(audio).is_absolute():
            problems.append(f"audio path {audio!r} is absolute; write it relative to the manifest's folder")
        elif not audio or "\0" in audio or not (folder / audio).is_file():
            problems.append(f"audio file {audio!r} does not exist in the manifest's folder")
    if problems:
        return problems
    return Utterance(
        utterance_id=str(entry.get("utterance_id")),
        audio=_located(folder / entry["audio"]),
        text=entry["text"],
        speaker=None if speaker is None else str(speaker),
        synthetic=entry.get("synthetic", False),
        languages=None if languages is None else tuple(languages),
    )


Reason = Literal[
    "no_recording", "no_transcript", "no_words", "not_converted", "duplicate", "unreadable", "too_long",
    "beyond_recording",
]  # fmt: skip
"""Why an utterance is left out."""
_NAMED = 5


@dataclass
class Recordings:
    """Usable utterances of a source by id, and ids of left-out utterances by reason."""

    utterances: list[Utterance]
    left_out: dict[Reason, list[str]] = field(default_factory=dict)

    def leave_out(self, reason: Reason, utterance_id: str) -> None:
        """Record that an utterance is left out."""
        self.left_out.setdefault(reason, []).append(utterance_id)

    def left_out_sentence(self) -> str | None:
        """A sentence on the left-out utterances, with the first id of each reason; ``None`` if all are used."""
        parts = [
            f"{len(names)} {reason} ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})"
            for reason, names in sorted(self.left_out.items())
        ]
        return f"left out: {'; '.join(parts)}" if parts else None


def check_recordings(recordings: Recordings, maximum_seconds: float, source: str | Path) -> list[AudioFacts]:
    """Open every recording; leave out, by name, recordings without words, unreadable ones and ones that are too long.

    Returns the headers of the others. Raises ``SpeechError`` if none is left.
    """
    usable, headers = [], []
    for utterance in tqdm(recordings.utterances, desc="checking", unit=" files", disable=None, leave=False):
        try:
            facts = audio_facts(utterance.audio)
            reason: Reason | None = "too_long" if facts.seconds > maximum_seconds else None
        except SpeechError:
            reason = "unreadable"
        if not normalise(utterance.text):
            reason = "no_words"
        if reason:
            recordings.leave_out(reason, utterance.utterance_id)
        else:
            headers.append(facts)
            usable.append(utterance)
    recordings.utterances = usable
    if not usable:
        raise SpeechError(f"source {str(source)!r} has no utterance that can be used; {recordings.left_out_sentence()}")
    return headers


def existing_source(source: str | Path, what: str) -> Path:
    """The path of an existing source; ``what`` names the expected source in the error."""
    path = Path(source)
    if not path.exists():
        raise SpeechError(f"source {str(source)!r} does not exist; give {what}")
    return path


def check_names(chosen: Sequence[str], found: Iterable[str], setting: str, source: str | Path) -> None:
    """Raise ``SpeechError`` if a name that a setting chooses is not in the source."""
    known = sorted(set(found))
    missing = [name for name in chosen if name not in known]
    if missing:
        raise SpeechError(
            f"{setting} {missing!r} not in source {str(source)!r}; it has: {', '.join(known[:20]) or 'none'}"
        )


def recording_seconds(utterances: Iterable[Utterance], maximum_seconds: float) -> list[float]:
    """Seconds of each recording, from its header.

    Raises ``SpeechError`` that lists missing, empty, truncated or too long recordings and files that are no audio, as
    far as headers and last samples show.
    """
    seconds, problems = [], []
    for utterance in utterances:
        try:
            seconds.append(audio_facts(utterance.audio, maximum_seconds=maximum_seconds).seconds)
        except SpeechError as error:
            problems.append(f"utterance {utterance.utterance_id!r}: {error}")
    fail_with_recordings(problems)
    return seconds


def fail_with_recordings(problems: Sequence[str]) -> None:
    """Raise ``SpeechError`` that lists the unusable recordings, if there are any."""
    if problems:
        raise SpeechError(problem_list(problems, "recordings cannot be used"))
