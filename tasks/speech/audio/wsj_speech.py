"""Recordings of WSJ0 and WSJ1 (Paul and Baker 1992) with the transcripts and lists that the LDC ships.

The discs' recordings (``.wv1``, ``.wv2``) are NIST SPHERE files compressed with shorten, which libsndfile cannot read.
Convert them first, into ``.wav`` or ``.flac`` files of the same names, beside them or in another folder below the same
source, for example with ``sph2pipe -f wav -p -c 1 440c0401.wv1 440c0401.wav``. ``.wv1`` files that are not compressed
are read as they are; ``.wv2``, the second microphone, is left alone.

The words are those of the detailed transcripts (``.dot``; ``.lsn``, then ``.ptx`` where there is none), without the
transcribers' marks. Verbalised punctuation (``,COMMA``) was spoken and stays a word.
"""

import re
from pathlib import Path

from tasks.corpora.sources.wsj import transcribed_utterance
from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import (
    NO_RECORDING,
    NO_TRANSCRIPT,
    NOT_CONVERTED,
    Recordings,
    check_names,
    existing_source,
)
from tasks.speech.audio.settings import WallStreetJournalSpeech

_RECORDINGS = (".flac", ".wav", ".wv1")
"""The first that an utterance has is read."""
_TRANSCRIPTS = (".dot", ".lsn", ".ptx")
_UTTERANCE_ID = re.compile(r"[0-9a-z]{8}", re.IGNORECASE)


def read_wsj_speech(settings: WallStreetJournalSpeech) -> Recordings:
    """The utterances of the chosen lists and folders in the order of their ids; the speaker is their first three
    letters.

    Left out and counted: recordings that are only there compressed with shorten, recordings without transcript, and
    utterances of a list without recording. Raises ``SpeechError`` where the source, a list, or all transcripts are
    missing.
    """
    source = existing_source(settings.source, "the folder that holds the discs' folders")
    files = sorted(path for path in source.rglob("*") if path.is_file())
    words, transcripts = _words(files)
    if not transcripts:
        raise SpeechError(
            f"source {str(source)!r} has no transcripts (.dot, .lsn or .ptx); copy the discs' folders there"
        )
    recordings = Recordings([], transcripts)
    audio = _audio(files, source, settings.folders)
    wanted = set(audio)
    if settings.lists:
        listed = set().union(*(_listed(source / name, recordings) for name in settings.lists))
        for name in sorted(listed - wanted):
            recordings.leave_out(NO_RECORDING, name)
        wanted &= listed
    for name in sorted(wanted):
        if name not in words:
            recordings.leave_out(NO_TRANSCRIPT, name)
        elif _is_shortened(audio[name]):
            recordings.leave_out(NOT_CONVERTED, name)
        else:
            recordings.utterances.append(Utterance(name, audio[name].absolute(), words[name], name[:3]))
    if not recordings.utterances and recordings.left_out.get(NOT_CONVERTED):
        raise SpeechError(
            f"source {str(source)!r}: all {len(recordings.left_out[NOT_CONVERTED])} recordings are NIST SPHERE files "
            "compressed with shorten, which cannot be read; convert each to .wav of the same name, for example with "
            "sph2pipe -f wav -p -c 1 NAME.wv1 NAME.wav"
        )
    return recordings


def _words(files: list[Path]) -> tuple[dict[str, str], list[Path]]:
    """Text by utterance, the detailed transcript first, and the files that were read."""
    words: dict[str, str] = {}
    transcripts = []
    for ending in _TRANSCRIPTS:
        for path in files:
            if path.suffix.lower() != ending:
                continue
            transcripts.append(path)
            for number, line in enumerate(read_lines(path), start=1):
                if not line.strip():
                    continue
                utterance = transcribed_utterance(line)
                if utterance is None:
                    raise SpeechError(
                        f"{str(path)!r}: line {number} is no utterance; a line of a transcript is 'TEXT (UTTERANCE-ID)'"
                    )
                words.setdefault(utterance[1].lower(), utterance[0])
    return words, transcripts


def _audio(files: list[Path], source: Path, folders: list[str]) -> dict[str, Path]:
    """The file of each utterance, of the endings that can be read the first."""
    candidates = [path for path in files if path.suffix.lower() in _RECORDINGS and _UTTERANCE_ID.fullmatch(path.stem)]
    names = {path: set(path.relative_to(source).parts[:-1]) | {source.name} for path in candidates}
    check_names(folders, set().union(*names.values()), "folders", source)
    audio: dict[str, Path] = {}
    for path in sorted(candidates, key=lambda path: _RECORDINGS.index(path.suffix.lower())):
        if not folders or names[path] & set(folders):
            audio.setdefault(path.stem.lower(), path)
    return audio


def _listed(index: Path, recordings: Recordings) -> set[str]:
    """Utterances of an index file: lines ``11_13_1: wsj0/si_et_20/440/440c0401.wv1``, with or without the ending."""
    if not index.is_file():
        raise SpeechError(f"list {str(index)!r} does not exist; 'lists' are index files relative to the source")
    recordings.transcripts.append(index)
    names = set()
    for line in read_lines(index):
        stem = re.sub(r"\.wv1$", "", line.strip().replace("\\", "/").rsplit("/", 1)[-1], flags=re.IGNORECASE)
        if not line.startswith(";") and _UTTERANCE_ID.fullmatch(stem):
            names.add(stem.lower())
    if not names:
        raise SpeechError(f"list {str(index)!r} names no utterance; it should have lines 'DISC: FOLDER/NAME.wv1'")
    return names


def _is_shortened(path: Path) -> bool:
    with open(path, "rb") as stream:
        header = stream.read(1024)
    return header.startswith(b"NIST_1A") and b"shorten" in header
