"""Recordings of published corpora and in the forms of toolkits: LibriSpeech, WSJ0 and WSJ1, Kaldi, NeMo and Lhotse.

LibriSpeech (Panayotov et al. 2015): ``PART/SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt`` has a line for each utterance,
and its FLAC file is in the same folder.

WSJ (Paul and Baker 1992): the discs' recordings (``.wv1``) are compressed with shorten, which libsndfile cannot read.
Convert them first, into ``.wav`` or ``.flac`` files of the same names anywhere below the source, for example with
``sph2pipe -f wav -p -c 1 440c0401.wv1 440c0401.wav``. The words are those of the detailed transcripts (``.dot``),
without the transcribers' marks. Verbalised punctuation (``,COMMA``) was spoken and stays a word.

A Kaldi data folder (kaldi-asr.org/doc/data_prep.html) has ``text`` (``UTTERANCE WORDS``), ``wav.scp``
(``RECORDING FILE``), ``segments`` (``UTTERANCE RECORDING BEGIN END``, in seconds) if recordings are longer than
utterances, and ``utt2spk`` (``UTTERANCE SPEAKER``). ``wav.scp`` may have
``flac -c -d -s FILE |`` instead of a file. Commands are not executed.

A manifest of NeMo has lines ``{"audio_filepath": "a/b.wav", "text": "good morning", "duration": 1.9, "offset": 0.5}``.

A cut of Lhotse is a line with an utterance for each supervision. One channel of several is cut out.

    {"id": "cut-1", "start": 0.5, "duration": 1.9, "channel": 0, "recording": {"sources": [{"type": "file",
     "channels": [0, 1], "source": "a/b.wav"}], "duration": 9.0, ...}, "supervisions": [{"start": 0.0,
     "duration": 1.9, "text": "good morning"}]}

Kaldi, NeMo and Lhotse may have absolute paths. A path that does not exist is searched by its end below the source's
folder.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tasks.corpora.sources.wsj import transcribed_utterance
from tasks.corpora.text_lines import finite_number, read_lines
from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance, read_manifest
from tasks.speech.audio.recordings import Found, LeftOut
from tasks.speech.audio.settings import KaldiSpeech, LibriSpeech, ManifestSpeech, WallStreetJournalSpeech
from tasks.speech.audio.utterance_lines import named_lines, read_json_lines, read_records

_TRANSCRIPTS = "*.trans.txt"
_ROUNDING = 0.05
"""Seconds by which the end of a whole recording may differ from its length."""


def read_librispeech(settings: LibriSpeech) -> Found:
    """The utterances of the chosen parts in the order of their ids; the speaker is the reader's number.

    A line without a recording and a recording without a line are left out. Raises ``SpeechError`` if the folder has no
    transcripts or no such part.
    """
    source = _existing(settings.source, "the folder that LibriSpeech's archives were unpacked into")
    # The part, such as test-clean, is the folder above speaker and chapter.
    parts = {path: path.absolute().parents[2].name for path in sorted(source.rglob(_TRANSCRIPTS))}
    _check_names(settings.parts, parts.values(), "parts", source)
    if not parts:
        raise SpeechError(f"source {str(source)!r} has no {_TRANSCRIPTS}; name the folder that holds test-clean or so")
    found: dict[str, Utterance] = {}
    for path in (path for path, part in parts.items() if not settings.parts or part in settings.parts):
        lines = dict(named_lines(path, "SPEAKER-CHAPTER-NUMBER WORDS", empty=True))
        for name, text in lines.items():
            audio = path.parent / f"{name}.flac"
            if audio.is_file():
                found[name] = Utterance(name, audio.absolute(), text, name.split("-")[0])
            else:
                yield LeftOut("no_recording", name)
        without = {audio.stem for audio in path.parent.glob("*.flac")} - lines.keys()
        yield from (LeftOut("no_transcript", name) for name in sorted(without))
    yield from (found[name] for name in sorted(found))


def read_wsj_speech(settings: WallStreetJournalSpeech) -> Found:
    """The utterances of the chosen folders in the order of their ids; the speaker is their first three letters.

    Left out: recordings without a transcript. Raises ``SpeechError`` if the source, a chosen folder or all transcripts
    are missing.
    """
    source = _existing(settings.source, "the folder that holds the discs' folders")
    files = sorted(path for path in source.rglob("*") if path.is_file())
    lines = (line for path in files if path.suffix.lower() == ".dot" for line in read_lines(path))
    words = {name.lower(): text for text, name in filter(None, map(transcribed_utterance, lines))}
    if not words:
        raise SpeechError(f"source {str(source)!r} has no transcripts (.dot); copy the discs' folders there")
    recordings = [path.relative_to(source) for path in files if path.suffix.lower() in (".wav", ".flac")]
    _check_names(settings.folders, {folder for path in recordings for folder in path.parts[:-1]}, "folders", source)
    if not recordings:
        raise SpeechError(f"source {str(source)!r} has no .wav or .flac files; convert .wv1 files by 'sph2pipe -f wav'")
    chosen = [path for path in recordings if not settings.folders or set(path.parts) & set(settings.folders)]
    # An utterance that was converted twice is one.
    for name, path in sorted({path.stem.lower(): path for path in chosen}.items()):
        if name in words:
            yield Utterance(name, (source / path).absolute(), words[name], name[:3])
        else:
            yield LeftOut("no_transcript", name)


def read_kaldi(settings: KaldiSpeech) -> Found:
    """The utterances in the order of ``text``.

    Left out: utterances without a recording, and segments without words. Raises ``SpeechError`` if ``text`` or
    ``wav.scp`` is missing, and names lines of another form.
    """
    folder = _existing(settings.source, "a data folder of Kaldi's")
    for name in ("text", "wav.scp"):
        if not (folder / name).is_file():
            raise SpeechError(f"source {str(folder)!r} has no {name!r}; give a data folder of Kaldi's")

    def lines(name: str, form: str, *, empty: bool = False) -> dict[str, str]:
        return dict(named_lines(folder / name, form, empty=empty)) if (folder / name).is_file() else {}

    written, speakers = lines("wav.scp", "RECORDING FILE"), lines("utt2spk", "UTTERANCE SPEAKER")
    # What 'flac -c -d' decodes is in its file.
    files = {name: re.sub(r"^(?:\S*/)?flac .*?(\S+) *\|$", r"\1", file) for name, file in written.items()}
    if made := next((file for file in files.values() if file.endswith("|")), None):
        raise SpeechError(
            f"{str(folder / 'wav.scp')!r} has a recording that {made.split()[0]!r} makes; run the commands, and name "
            "the files that they write"
        )
    texts = lines("text", "UTTERANCE WORDS", empty=True)
    segments = {name: _segment(folder, name, rest) for name, rest in lines("segments", "UTTERANCE RECORDING").items()}
    for name, text in texts.items():
        recording, *span = segments.get(name, (name,))
        audio = _recording(files[recording], folder) if recording in files else None
        if audio is None:
            yield LeftOut("no_recording", name)
        else:
            yield Utterance(name, audio, text, speakers.get(name), span=(span[0], span[1]) if span else None)
    yield from (LeftOut("no_transcript", name) for name in segments if name not in texts)


def _segment(folder: Path, name: str, rest: str) -> tuple[str, float, float]:
    try:
        recording, begin, end = rest.split()
        return recording, float(begin), float(end)
    except ValueError:
        raise SpeechError(
            f"{str(folder / 'segments')!r}: {name!r} needs 'UTTERANCE RECORDING BEGIN END', times in seconds"
        ) from None


def _recording(audio: str, folder: Path) -> Path | None:
    """A file by its path, or else a file below the folder whose path has the same end."""
    parts = Path(audio).parts[Path(audio).is_absolute() :]
    candidates = [Path(audio), *(folder.joinpath(*parts[start:]) for start in range(len(parts)))]
    return next((path.absolute() for path in candidates if path.is_file()), None)


def read_any_manifest(settings: ManifestSpeech) -> Found:
    """The utterances of one of our own manifests (``read_manifest``), of NeMo's, or of cuts of Lhotse.

    Those of toolkits without a recording are left out. Raises ``SpeechError`` that lists lines of another form.
    """
    path = settings.source
    lines = list(read_json_lines(path, "manifest"))
    first = next((record for _, record in lines if isinstance(record, dict)), {})
    divide = _of_nemo if "audio_filepath" in first else _of_lhotse if "supervisions" in first else None
    if divide is None:
        yield from read_manifest(path)
        return
    records = ((number, each) for number, one in lines for each in ([one] if isinstance(one, str) else divide(one)))
    parse = partial(_part, Path(path).absolute().parent)
    found: dict[str, Utterance | LeftOut] = read_records(path, parse, "manifest", records=records)
    yield from found.values()


def _of_nemo(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record with a name: its path without ending, and its offset. An offset of 0 means the whole recording."""
    path, offset = Path(str(record.get("audio_filepath"))).with_suffix("").as_posix(), record.get("offset") or None
    yield {"utterance_id": f"{path}-{offset}" if offset else path} | record | {"offset": offset, "channel": None}


def _of_lhotse(cut: dict[str, Any]) -> Iterator[dict[str, Any] | str]:
    """A record with NeMo's keys and ``channel`` for each supervision of a cut, or the problem of its line."""
    try:
        recording, said = cut["recording"], cut["supervisions"]
        sources = recording["sources"]
        for number, one in enumerate(said):
            # A recording may have a file for each channel.
            channel = one.get("channel", cut.get("channel", 0))
            source = next((each for each in sources if channel in each["channels"]), sources[0])
            channels = source["channels"]
            place = channels.index(channel) if channel in channels else channel
            begin, seconds, alone = cut["start"] + one["start"], one["duration"], channels == [channel]
            whole = alone and begin == 0 and abs(recording["duration"] - seconds) < _ROUNDING
            yield {
                "utterance_id": cut["id"] if len(said) == 1 else f"{cut['id']}-{number}",
                "text": one.get("text"),
                "speaker": one.get("speaker"),
                "audio_filepath": source["source"] if source["type"] == "file" else None,
                "offset": None if whole else begin,
                "duration": seconds,
                "channel": None if alone else place,
            }
    except (KeyError, IndexError, TypeError, AttributeError):
        yield "is no cut of Lhotse with a recording, and supervisions with start and duration in seconds"


def _part(folder: Path, record: dict[str, Any]) -> Utterance | LeftOut | list[str]:
    """An utterance, which is left out if it has no recording, or the problems of its line."""
    keys = ("audio_filepath", "text", "speaker", "offset", "channel")
    audio, text, speaker, offset, channel = (record.get(key) for key in keys)
    begin, seconds = finite_number(offset), finite_number(record.get("duration"))
    wrong = {
        "has no text": not isinstance(text, str),
        "has no path of an audio file": not isinstance(audio, str) or "\0" in audio,
        "has no offset and duration in seconds": offset is not None and (begin is None or seconds is None),
        "'channel' is not a number": type(channel) not in (int, type(None)),
    }
    if problems := [problem for problem, is_there in wrong.items() if is_there]:
        return problems
    found, name = _recording(str(audio), folder), str(record["utterance_id"])
    if found is None:
        return LeftOut("no_recording", name)
    span = None if begin is None or seconds is None else (begin, begin + seconds)
    return Utterance(name, found, str(text), None if speaker is None else str(speaker), span=span, channel=channel)


def _existing(source: str | Path, what: str) -> Path:
    """The path of an existing source; ``what`` names the expected source in the error."""
    path = Path(source)
    if not path.exists():
        raise SpeechError(f"source {str(source)!r} does not exist; give {what}")
    return path


def _check_names(chosen: Sequence[str], found: Iterable[str], setting: str, source: str | Path) -> None:
    """Raise ``SpeechError`` if a name that a setting chooses is not in the source."""
    known = sorted(set(found))
    if missing := [name for name in chosen if name not in known]:
        raise SpeechError(
            f"{setting} {missing!r} not in source {str(source)!r}; it has: {', '.join(known[:20]) or 'none'}"
        )
