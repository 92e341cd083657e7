"""A manifest says which recording holds which words: JSON lines, one utterance a line.

    {"utterance_id": "19-198-0000", "audio": "19-198-0000.flac", "text": "NORTHANGER ABBEY", "speaker": "19"}

``audio`` is relative to the manifest's folder, so that a folder with its manifest can be moved. ``speaker``,
``"synthetic": true`` (the recording was made from its text by a machine) and ``languages``, a letter or code for each
white-space word of the text, may be left out; other keys are let be.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from tqdm import tqdm

from tasks.corpora.text_lines import NoJson, line_writer, read_json_line, read_lines
from tasks.errors import CorpusError, SpeechError
from tasks.language_model.normalisation import normalise
from tasks.languages.labelled_words import labels_of
from tasks.speech.audio.audio_file import AudioFacts, audio_facts
from tasks.speech.audio.utterance_lines import problem_list

_REQUIRED_KEYS = ("utterance_id", "audio", "text")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recorded utterance and the words that were said."""

    utterance_id: str
    audio: Path
    """The file: an absolute path whose folders are real ones; where the file itself is a link, the link."""
    text: str
    """What was said, as it was written down: cased and punctuated or not."""
    speaker: str | None = None
    synthetic: bool = False
    """Whether the recording was synthesised from the text."""
    languages: tuple[str | None, ...] | None = None
    """A letter or code for each white-space word of the text, where somebody says."""


def read_manifest(path: str | Path) -> list[Utterance]:
    """The utterances in the manifest's order.

    Raises ``SpeechError`` that lists what is wrong: lines that are no JSON objects, missing keys, values of the wrong
    type, ids that stand twice, absolute paths, audio files that are not there, and a manifest without any utterance.
    The text of an utterance is never quoted.
    """
    manifest = Path(path)
    if not manifest.is_file():
        raise SpeechError(f"manifest {str(path)!r} does not exist or is no file; give a file of JSON lines")
    problems: list[str] = []
    utterances: list[Utterance] = []
    first_lines: dict[str, int] = {}
    folder = _located(manifest).parent
    try:
        for number, line in enumerate(read_lines(manifest, "manifest"), start=1):
            if not line.strip():
                continue
            entry, found = _parse(line)
            found += _audio_problems(entry.get("audio"), folder)
            name = entry.get("utterance_id")
            if isinstance(name, str) and name:
                if name in first_lines:
                    found.append(f"utterance_id {name!r} stands in line {first_lines[name]} too")
                first_lines.setdefault(name, number)
            problems += [f"line {number}: {problem}" for problem in found]
            if not problems:
                utterances.append(_utterance(entry, folder))
    except CorpusError as error:
        raise SpeechError(str(error)) from None
    if problems:
        raise SpeechError(f"manifest {str(path)!r}: {problem_list(problems)}")
    if not utterances:
        raise SpeechError(f"manifest {str(path)!r} is empty; it needs at least one utterance")
    return utterances


def write_manifest(path: str | Path, utterances: Iterable[Utterance]) -> None:
    """Write the utterances with paths relative to the manifest's folder.

    It has mode 0600. Files that are not there yet are no error here.
    """
    folder = _located(Path(path)).parent
    with line_writer(path, private=True) as stream:
        for utterance in utterances:
            audio = Path(os.path.relpath(_located(utterance.audio), folder)).as_posix()
            entry: dict[str, Any] = {"utterance_id": utterance.utterance_id, "audio": audio, "text": utterance.text}
            if utterance.speaker is not None:
                entry["speaker"] = utterance.speaker
            if utterance.synthetic:
                entry["synthetic"] = True
            if utterance.languages is not None:
                entry["languages"] = utterance.languages
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _located(path: Path) -> Path:
    """The file in its real folder. A file that is a link, as in the folders that DVC checks out, stays where it is:
    what it points to lies in a cache, without its name and its neighbours."""
    return path.parent.resolve() / path.name


def _parse(line: str) -> tuple[dict[str, Any], list[str]]:
    try:
        entry = read_json_line(line)
    except NoJson as error:
        return {}, [str(error)]
    if not isinstance(entry, dict):
        return {}, [f"is not a JSON object but {type(entry).__name__}"]
    missing = [key for key in _REQUIRED_KEYS if key not in entry]
    problems = [f"has no {key!r}" for key in missing]
    for key in _REQUIRED_KEYS:
        if key not in missing and not isinstance(entry[key], str):
            problems.append(f"{key!r} is not a string but {type(entry[key]).__name__}")
    if entry.get("utterance_id") == "":
        problems.append("'utterance_id' is empty")
    speaker = entry.get("speaker")
    if isinstance(speaker, bool) or not isinstance(speaker, str | int | None):
        problems.append(f"'speaker' is not a string but {type(speaker).__name__}")
    if not isinstance(entry.get("synthetic", False), bool):
        problems.append(f"'synthetic' is neither true nor false but {type(entry['synthetic']).__name__}")
    if entry.get("languages") is not None and labels_of(str(entry.get("text")), entry["languages"]) is None:
        problems.append("'languages' needs a letter or code for each word of the text")
    return entry, problems


def _audio_problems(audio: object, folder: Path) -> list[str]:
    if not isinstance(audio, str):
        return []  # said already
    if not audio:
        return ["'audio' is empty"]
    if PurePosixPath(audio).is_absolute() or PureWindowsPath(audio).is_absolute():
        return [f"audio path {audio!r} is absolute; write it relative to the manifest's folder"]
    if "\0" in audio or not (folder / audio).is_file():
        return [f"audio file {audio!r} does not exist in the manifest's folder"]
    return []


def _utterance(entry: dict[str, Any], folder: Path) -> Utterance:
    speaker = entry.get("speaker")
    return Utterance(
        utterance_id=entry["utterance_id"],
        audio=_located(folder / entry["audio"]),
        text=entry["text"],
        speaker=None if speaker is None else str(speaker),
        synthetic=entry.get("synthetic", False),
        languages=None if entry.get("languages") is None else tuple(entry["languages"]),
    )


Reason = Literal[
    "no_recording", "no_transcript", "no_words", "not_converted", "duplicate", "unreadable", "too_long",
    "beyond_recording",
]  # fmt: skip
"""Why an utterance is left out."""
_NAMED = 5


@dataclass
class Recordings:
    """Utterances of a source, by their ids, and the ids of those that were left out, by the reason."""

    utterances: list[Utterance]
    left_out: dict[Reason, list[str]] = field(default_factory=dict)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By utterance id, where in its recording an utterance begins and ends, in seconds, if it is a part of one."""

    def leave_out(self, reason: Reason, utterance_id: str) -> None:
        """Note that an utterance does not come in."""
        self.left_out.setdefault(reason, []).append(utterance_id)

    def left_out_counts(self) -> dict[str, int]:
        """How many were left out, by the reason."""
        return {reason: len(names) for reason, names in sorted(self.left_out.items())}

    def left_out_sentence(self) -> str | None:
        """Which utterances were left out, the first of each reason by name; ``None`` where all are in."""
        parts = [
            f"{len(names)} {reason} ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})"
            for reason, names in sorted(self.left_out.items())
        ]
        return f"left out: {'; '.join(parts)}" if parts else None


def check_recordings(recordings: Recordings, maximum_seconds: float, source: str | Path) -> list[AudioFacts]:
    """Open every recording and leave out, by name, those without words, that cannot be read or are too long.

    Returns what the headers of the others say. Raises ``SpeechError`` where none is left.
    """
    kept, headers = [], []
    for utterance in tqdm(recordings.utterances, desc="checking", unit=" files", disable=None, leave=False):
        if not normalise(utterance.text):
            recordings.leave_out("no_words", utterance.utterance_id)
            continue
        try:
            facts = audio_facts(utterance.audio)
        except SpeechError:
            recordings.leave_out("unreadable", utterance.utterance_id)
            continue
        if facts.seconds > maximum_seconds:
            recordings.leave_out("too_long", utterance.utterance_id)
            continue
        headers.append(facts)
        kept.append(utterance)
    recordings.utterances = kept
    if not kept:
        raise SpeechError(f"source {str(source)!r} has no utterance that can be used; {recordings.left_out_sentence()}")
    return headers


def existing_source(source: str | Path, what: str) -> Path:
    """The path of a source that is there; ``what`` says in the error what should be."""
    path = Path(source)
    if not path.exists():
        raise SpeechError(f"source {str(source)!r} does not exist; give {what}")
    return path


def check_names(chosen: Sequence[str], found: Iterable[str], setting: str, source: str | Path) -> None:
    """Raise ``SpeechError`` where a name that a setting chooses is not in the source."""
    known = sorted(set(found))
    missing = [name for name in chosen if name not in known]
    if missing:
        raise SpeechError(
            f"{setting} {missing!r} not in source {str(source)!r}; it has: {', '.join(known[:20]) or 'none'}"
        )


def recording_seconds(utterances: Iterable[Utterance], maximum_seconds: float) -> list[float]:
    """Seconds of each recording, by its header.

    Raises ``SpeechError`` that lists the recordings which are missing, empty, cut off, no audio or too long, as far as
    headers and last samples tell.
    """
    seconds, problems = [], []
    for utterance in utterances:
        try:
            seconds.append(audio_facts(utterance.audio, maximum_seconds=maximum_seconds).seconds)
        except SpeechError as error:
            problems.append(recording_problem(utterance, error))
    fail_with_recordings(problems)
    return seconds


def recording_problem(utterance: Utterance, error: SpeechError) -> str:
    """What is wrong with a recording, for ``fail_with_recordings``."""
    return f"utterance {utterance.utterance_id!r}: {error}"


def fail_with_recordings(problems: Sequence[str]) -> None:
    """``SpeechError`` that lists the recordings which cannot be used, where there are any."""
    if problems:
        raise SpeechError(problem_list(problems, "recordings cannot be used"))
