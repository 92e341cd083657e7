"""Manifests of recordings with their words: JSON lines, one utterance a line.

    {"utterance_id": "19-198-0000", "audio": "19-198-0000.flac", "text": "NORTHANGER ABBEY", "speaker": "19"}

``audio`` is relative to the manifest's folder, so that a folder with its manifest can be moved. Optional keys are
``speaker``, ``"synthetic": true`` (the recording was synthesised from its text) and ``languages``, a letter or code for
each white-space word of the text. Other keys are ignored.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import line_writer
from tasks.errors import SpeechError
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
    type, duplicate ids, missing audio files, and a manifest without any utterance.
    The text of an utterance is never quoted.
    """
    return list(read_records(path, partial(_parse, _located(Path(path)).parent), "manifest").values())


def write_manifest(path: str | Path, utterances: Iterable[Utterance]) -> None:
    """Write the utterances with paths relative to the manifest's folder; mode 0600.

    Missing audio files are no error here.
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


def _parse(folder: Path, entry: dict[str, Any]) -> Utterance | list[str]:
    problems = [f"has no {key!r} that is text" for key in ("audio", "text") if not isinstance(entry.get(key), str)]
    speaker, languages, audio = entry.get("speaker"), entry.get("languages"), entry.get("audio")
    if languages is not None and labels_of(str(entry.get("text")), languages) is None:
        problems.append("'languages' needs a letter or code for each word of the text")
    if not isinstance(entry.get("synthetic", False), bool):
        problems.append("'synthetic' is not true or false")
    if isinstance(audio, str) and ("\0" in audio or not (folder / audio).is_file()):
        problems.append(f"audio file {audio!r} does not exist in the manifest's folder")
    if problems:
        return problems
    return Utterance(
        utterance_id=str(entry.get("utterance_id")),
        audio=_located(folder / entry["audio"]),
        text=entry["text"],
        speaker=None if speaker is None else str(speaker),
        synthetic=bool(entry.get("synthetic")),
        languages=None if languages is None else tuple(languages),
    )


def recording_facts(utterances: Iterable[Utterance], maximum_seconds: float) -> list[AudioFacts]:
    """Length, channels and sample rate of each recording, from its header.

    Raises ``SpeechError`` that lists missing, empty, truncated or too long recordings and files that are no audio, as
    far as headers and last samples show.
    """
    facts, problems = [], []
    for utterance in utterances:
        try:
            facts.append(audio_facts(utterance.audio, maximum_seconds=maximum_seconds))
        except SpeechError as error:
            problems.append(f"utterance {utterance.utterance_id!r}: {error}")
    if problems:
        raise SpeechError(problem_list(problems, "recordings cannot be used"))
    return facts
