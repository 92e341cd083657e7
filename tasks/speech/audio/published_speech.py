"""Published corpora of speech: LibriSpeech, WSJ0 and WSJ1.

LibriSpeech (Panayotov et al. 2015): ``PART/SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt`` has a line for each utterance,
and its FLAC file is in the same folder.

WSJ (Paul and Baker 1992): the discs' recordings (``.wv1``, ``.wv2``) are NIST SPHERE files compressed with shorten,
which libsndfile cannot read. Convert them first, into ``.wav`` or ``.flac`` files of the same names, in the same folder
or another folder below the source, for example with ``sph2pipe -f wav -p -c 1 440c0401.wv1 440c0401.wav``. Uncompressed
``.wv1`` files are read directly; ``.wv2``, the second microphone, is ignored. The words are those of the detailed
transcripts (``.dot``; else ``.lsn``, else ``.ptx``), without the transcribers' marks. Verbalised punctuation
(``,COMMA``) was spoken and stays a word.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tasks.corpora.sources.wsj import transcribed_utterance
from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.speech.audio.audio_file import is_shortened
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import Found, LeftOut, check_names, existing_source
from tasks.speech.audio.settings import LibriSpeech, WallStreetJournalSpeech
from tasks.speech.audio.utterance_lines import named_lines

_TRANSCRIPTS = "*.trans.txt"


def read_librispeech(settings: LibriSpeech) -> Found:
    """The utterances of the chosen parts in the order of their ids; the speaker is the reader's number.

    A line without a recording and a recording without a line are left out. Raises ``SpeechError`` if the folder has no
    transcripts or no such part.
    """
    source = existing_source(settings.source, "the folder that LibriSpeech's archives were unpacked into")
    # The part, such as test-clean, is the folder above speaker and chapter.
    parts = {path: path.absolute().parents[2].name for path in sorted(source.rglob(_TRANSCRIPTS))}
    check_names(settings.parts, parts.values(), "parts", source)
    if not parts:
        raise SpeechError(f"source {str(source)!r} has no {_TRANSCRIPTS}; name the folder that holds test-clean or so")
    found: dict[str, Utterance] = {}
    for path in (path for path, part in parts.items() if not settings.parts or part in settings.parts):
        lines = dict(named_lines(path, "SPEAKER-CHAPTER-NUMBER WORDS", empty=True))
        for name, text in lines.items():
            audio = path.parent / f"{name}.flac"
            if name in found:
                yield LeftOut("duplicate", name)
            elif not audio.is_file():
                yield LeftOut("no_recording", name)
            else:
                found[name] = Utterance(name, audio.absolute(), text, name.split("-")[0])
        without = {audio.stem for audio in path.parent.glob("*.flac")} - lines.keys()
        yield from (LeftOut("no_transcript", name) for name in sorted(without))
    yield from (found[name] for name in sorted(found))


_RECORDINGS = (".flac", ".wav", ".wv1")
"""The first that an utterance has is read."""
_WSJ_TRANSCRIPTS = (".dot", ".lsn", ".ptx")
_WSJ_ID = re.compile(r"[0-9a-z]{8}", re.IGNORECASE)


def read_wsj_speech(settings: WallStreetJournalSpeech) -> Found:
    """The utterances of the chosen folders in the order of their ids; the speaker is their first three letters.

    Left out: recordings that exist only compressed with shorten, and recordings without a transcript. Raises
    ``SpeechError`` if the source, all transcripts or all readable recordings are missing.
    """
    source = existing_source(settings.source, "the folder that holds the discs' folders")
    files = sorted(path for path in source.rglob("*") if path.is_file())
    words = _words(files)
    if not words:
        raise SpeechError(
            f"source {str(source)!r} has no transcripts (.dot, .lsn or .ptx); copy the discs' folders there"
        )
    audio = _audio(files, source, settings.folders)
    shortened = {name for name, path in audio.items() if name in words and is_shortened(path)}
    if shortened and shortened == audio.keys() & words.keys():
        raise SpeechError(
            f"source {str(source)!r}: all {len(shortened)} recordings are NIST SPHERE files compressed with shorten, "
            "which cannot be read; convert each to .wav of the same name, for example with "
            "sph2pipe -f wav -p -c 1 NAME.wv1 NAME.wav"
        )
    for name in sorted(audio):
        if name not in words:
            yield LeftOut("no_transcript", name)
        elif name in shortened:
            yield LeftOut("not_converted", name)
        else:
            yield Utterance(name, audio[name].absolute(), words[name], name[:3])


def _words(files: Iterable[Path]) -> dict[str, str]:
    """Text by utterance, from the detailed transcript if there is one."""
    words: dict[str, str] = {}
    for path in (path for ending in _WSJ_TRANSCRIPTS for path in files if path.suffix.lower() == ending):
        for number, line in enumerate(read_lines(path), start=1):
            utterance = transcribed_utterance(line)
            if utterance is not None:
                words.setdefault(utterance[1].lower(), utterance[0])
            elif line.strip():
                raise SpeechError(
                    f"{str(path)!r}: line {number} is no utterance; a line of a transcript is 'TEXT (UTTERANCE-ID)'"
                )
    return words


def _audio(files: Iterable[Path], source: Path, folders: list[str]) -> dict[str, Path]:
    """The file of each utterance, with the first readable ending."""
    candidates = [path for path in files if path.suffix.lower() in _RECORDINGS and _WSJ_ID.fullmatch(path.stem)]
    names = {path: set(path.relative_to(source).parts[:-1]) | {source.name} for path in candidates}
    check_names(folders, set().union(*names.values()), "folders", source)
    audio: dict[str, Path] = {}
    for path in sorted(candidates, key=lambda path: _RECORDINGS.index(path.suffix.lower())):
        if not folders or names[path] & set(folders):
            audio.setdefault(path.stem.lower(), path)
    return audio
