"""Utterances without a file of their own: parts of longer recordings, such as conversations (Kaldi data folders), and
recordings inside a table (Parquet).

A Kaldi data folder (kaldi-asr.org/doc/data_prep.html) has ``text`` (``UTTERANCE WORDS``), ``wav.scp``
(``RECORDING FILE``), ``segments`` (``UTTERANCE RECORDING BEGIN END``, in seconds) if recordings are longer than
utterances, and ``utt2spk`` (``UTTERANCE SPEAKER``). ``wav.scp`` may have ``flac -c -d -s FILE |`` instead of a file;
other commands are not executed.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tasks.corpora.parquet_lines import open_parquet, parquet_files
from tasks.errors import CorpusError, SpeechError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.normalisation import normalise
from tasks.speech.audio.audio_file import open_audio
from tasks.speech.audio.manifest import Reason, Recordings, Utterance, existing_source
from tasks.speech.audio.settings import KaldiSpeech, ParquetSpeech
from tasks.speech.audio.utterance_lines import named_lines

_ROWS = 64
_BEYOND_SECONDS = 0.1
"""Seconds that a segment may end after the end of its recording, since times are rounded."""


def read_kaldi(settings: KaldiSpeech) -> Recordings:
    """The utterances in the order of ``text``; a missing path of ``wav.scp`` is searched by its end below the folder.

    Left out and counted: utterances without a recording, and segments without words. Raises ``SpeechError`` if ``text``
    or ``wav.scp`` is missing, and names lines of another form.
    """
    folder = existing_source(settings.source, "a data folder of Kaldi's")
    for name in ("text", "wav.scp"):
        if not (folder / name).is_file():
            raise SpeechError(f"source {str(folder)!r} has no {name!r}; give a data folder of Kaldi's")
    files = dict(named_lines(folder / "wav.scp", "RECORDING FILE"))
    speakers, found = (folder / name for name in ("utt2spk", "segments"))
    of_speakers = dict(named_lines(speakers, "UTTERANCE SPEAKER") if speakers.is_file() else ())
    texts = dict(named_lines(folder / "text", "UTTERANCE WORDS", empty=True))
    lines = named_lines(found, "UTTERANCE RECORDING") if found.is_file() else ()
    segments = {name: _segment(folder, name, rest) for name, rest in lines}
    recordings = Recordings([])
    for name, text in texts.items():
        recording = segments[name][0] if name in segments else name
        audio = found_recording(_file(folder, files[recording]), folder) if recording in files else None
        if audio is None:
            recordings.leave_out("no_recording", name)
            continue
        span = segments[name][1:] if name in segments else None
        recordings.utterances.append(Utterance(name, audio, text, of_speakers.get(name), span=span))
    for name in segments.keys() - texts.keys():
        recordings.leave_out("no_transcript", name)
    return recordings


def _segment(folder: Path, name: str, rest: str) -> tuple[str, float, float]:
    try:
        recording, begin, end = rest.split()
        return recording, float(begin), float(end)
    except ValueError:
        raise SpeechError(
            f"{str(folder / 'segments')!r}: {name!r} needs 'UTTERANCE RECORDING BEGIN END', times in seconds"
        ) from None


def _file(folder: Path, entry: str) -> str:
    if not entry.endswith("|"):
        return entry
    command = entry.rstrip("| ").split()
    if Path(command[0]).name != "flac":
        raise SpeechError(
            f"{str(folder / 'wav.scp')!r} has a recording that {command[0]!r} makes; run the commands, and name "
            "the files that they write"
        )
    return command[-1]


def found_recording(audio: str, folder: Path) -> Path | None:
    """A file by its path, or else a file below the folder whose path has the same end."""
    parts = Path(audio).parts[Path(audio).is_absolute() :]
    candidates = [Path(audio), *(folder.joinpath(*parts[start:]) for start in range(len(parts)))]
    return next((path.absolute() for path in candidates if path.is_file()), None)


def read_parquet_speech(settings: ParquetSpeech, folder: Path) -> Recordings:
    """The rows in order; their recordings are written into a private folder, which is replaced as a whole.

    Left out and counted: rows without a recording or text, and rows with a name that occurred before. Raises
    ``SpeechError`` if a column is missing or a file is damaged.
    """
    source = existing_source(settings.source, "a Parquet file, or a folder of them")
    columns = {settings.name, settings.text, "audio"} | ({settings.speaker} if settings.speaker else set())
    recordings = Recordings([])
    seen: set[str] = set()
    with atomic_folder(folder, private=True) as new:
        for row in _rows(source, columns):
            name, text, audio = str(row[settings.name]), row[settings.text], row["audio"] or {}
            if name in seen:
                recordings.leave_out("duplicate", name)
            elif not audio.get("bytes"):
                recordings.leave_out("no_recording", name)
            elif text is None:
                recordings.leave_out("no_transcript", name)
            else:
                seen.add(name)
                path = f"{len(seen):07d}{Path(audio.get('path') or '').suffix}"
                (new / path).write_bytes(audio["bytes"])
                (new / path).chmod(PRIVATE_MODE)
                speaker = row[settings.speaker] if settings.speaker else None
                spoken = None if speaker is None else str(speaker)
                recordings.utterances.append(Utterance(name, folder.absolute() / path, str(text), spoken))
    return recordings


def _rows(source: Path, columns: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of Parquet files, in small batches: a row group may hold an hour of speech."""
    try:
        for path in parquet_files(source):
            with open_parquet(path) as file:
                if missing := columns - set(file.schema_arrow.names):
                    raise SpeechError(
                        f"{str(path)!r} has no column {', '.join(map(repr, sorted(missing)))}; it has "
                        f"{', '.join(file.schema_arrow.names)}: say with name, text and speaker which is which"
                    )
                for batch in file.iter_batches(batch_size=_ROWS, columns=sorted(columns)):
                    yield from batch.to_pylist()
    except CorpusError as error:
        raise SpeechError(str(error)) from None


def cut_segments(recordings: Recordings, folder: Path, maximum_seconds: float) -> None:
    """Cut utterances that are parts of recordings into FLAC files in a private folder, which is replaced as a whole.

    Segments that have no word, are too long, or lie outside their recording are left out and counted.
    """
    usable: list[Utterance] = []
    with atomic_folder(folder, private=True) as new:
        for number, utterance in enumerate(tqdm(recordings.utterances, desc="cutting", disable=None, leave=False)):
            if utterance.span:
                path = f"{number:07d}.flac"
                if reason := _cut(utterance, utterance.span, maximum_seconds, new / path):
                    recordings.leave_out(reason, utterance.utterance_id)
                    continue
                utterance = replace(utterance, audio=folder.absolute() / path, span=None, channel=None)
            usable.append(utterance)
    recordings.utterances = usable


def _cut(utterance: Utterance, span: tuple[float, float], maximum_seconds: float, output: Path) -> Reason | None:
    """Write a part of a recording, from and to these seconds, or return why it cannot be used."""
    import soundfile

    begin, end = span
    seconds, channel = end - begin, utterance.channel
    if seconds > maximum_seconds:
        return "too_long"
    if not normalise(utterance.text):
        return "no_words"
    try:
        with open_audio(utterance.audio) as file:
            rate, missing = file.samplerate, end - file.frames / file.samplerate
            outside = channel is not None and not 0 <= channel < file.channels
            if outside or seconds <= 0 or begin < 0 or missing > min(_BEYOND_SECONDS, seconds / 2):
                return "beyond_recording"
            file.seek(round(begin * rate))
            samples = file.read(round(seconds * rate), always_2d=True)
    except (SpeechError, soundfile.LibsndfileError):
        return "unreadable"
    soundfile.write(output, samples if channel is None else samples[:, channel], rate, format="FLAC", subtype="PCM_16")
    output.chmod(PRIVATE_MODE)
    return None
