"""Utterances without a file of their own: parts of longer recordings, such as conversations (Kaldi data folders), and
recordings inside a table (Parquet).

A Kaldi data folder (kaldi-asr.org/doc/data_prep.html) has ``text`` (``UTTERANCE WORDS``), ``wav.scp``
(``RECORDING FILE``), ``segments`` (``UTTERANCE RECORDING BEGIN END``, in seconds) if recordings are longer than
utterances, and ``utt2spk`` (``UTTERANCE SPEAKER``). ``wav.scp`` may have ``flac -c -d -s FILE |`` instead of a file;
other commands are not executed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.corpora.parquet_lines import open_parquet, parquet_files
from tasks.errors import CorpusError, SpeechError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import Found, LeftOut, existing_source
from tasks.speech.audio.settings import KaldiSpeech, ParquetSpeech
from tasks.speech.audio.utterance_lines import named_lines

_ROWS = 64


def read_kaldi(settings: KaldiSpeech) -> Found:
    """The utterances in the order of ``text``; a missing path of ``wav.scp`` is searched by its end below the folder.

    Left out: utterances without a recording, and segments without words. Raises ``SpeechError`` if ``text`` or
    ``wav.scp`` is missing, and names lines of another form.
    """
    folder = existing_source(settings.source, "a data folder of Kaldi's")
    for name in ("text", "wav.scp"):
        if not (folder / name).is_file():
            raise SpeechError(f"source {str(folder)!r} has no {name!r}; give a data folder of Kaldi's")

    def lines(name: str, form: str, *, empty: bool = False) -> dict[str, str]:
        return dict(named_lines(folder / name, form, empty=empty)) if (folder / name).is_file() else {}

    files, speakers = lines("wav.scp", "RECORDING FILE"), lines("utt2spk", "UTTERANCE SPEAKER")
    texts = lines("text", "UTTERANCE WORDS", empty=True)
    segments = {name: _segment(folder, name, rest) for name, rest in lines("segments", "UTTERANCE RECORDING").items()}
    for name, text in texts.items():
        recording, *span = segments.get(name, (name,))
        audio = found_recording(_file(folder, files[recording]), folder) if recording in files else None
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


def read_parquet_speech(settings: ParquetSpeech, folder: Path) -> Found:
    """The rows in order; their recordings are written into a private folder, which is replaced as a whole at the end.

    Left out: rows without a recording or text, and rows with a name that occurred before. Raises ``SpeechError`` if a
    column is missing or a file is damaged.
    """
    source = existing_source(settings.source, "a Parquet file, or a folder of them")
    columns = {settings.name, settings.text, "audio"} | ({settings.speaker} if settings.speaker else set())
    seen: set[str] = set()
    with atomic_folder(folder, private=True) as fresh:
        for row in _rows(source, columns):
            name, text, audio = str(row[settings.name]), row[settings.text], row["audio"] or {}
            if name in seen:
                yield LeftOut("duplicate", name)
            elif not audio.get("bytes"):
                yield LeftOut("no_recording", name)
            elif text is None:
                yield LeftOut("no_transcript", name)
            else:
                seen.add(name)
                path = f"{len(seen):07d}{Path(audio.get('path') or '').suffix}"
                (fresh / path).write_bytes(audio["bytes"])
                (fresh / path).chmod(PRIVATE_MODE)
                speaker = row[settings.speaker] if settings.speaker else None
                spoken = None if speaker is None else str(speaker)
                yield Utterance(name, folder.absolute() / path, str(text), spoken)


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
