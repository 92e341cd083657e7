"""Manifests of recordings as NeMo and Lhotse write them: JSON lines, plain or compressed.

    {"audio_filepath": "a/b.wav", "text": "good morning", "duration": 1.9, "offset": 0.5}                    # NeMo
    {"id": "cut-1", "start": 0.5, "duration": 1.9, "channel": 0, "recording": {"sources": [{"type": "file",
     "source": "a/b.wav"}], ...}, "supervisions": [{"start": 0.0, "duration": 1.9, "text": "good morning"}]}  # Lhotse

Paths may be absolute. A path that does not exist is searched by its end below the manifest's folder.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import finite_number
from tasks.speech.audio.manifest import Utterance, read_manifest
from tasks.speech.audio.recordings import Found, LeftOut
from tasks.speech.audio.segmented_speech import found_recording
from tasks.speech.audio.utterance_lines import read_json_lines, read_records

_ROUNDING = 0.05
"""Seconds by which the end of a whole recording may differ from its length."""


def read_any_manifest(path: str | Path) -> Found:
    """The utterances of a manifest of NeMo, of Lhotse's cuts, or of one of our own (``read_manifest``).

    Those of a toolkit without a recording are left out. Raises ``SpeechError`` that lists lines of another form.
    """
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
    audio, offset = record.get("audio_filepath"), record.get("offset")
    name = Path(str(audio)).with_suffix("").as_posix() + (f"-{offset}" if offset else "")
    yield {
        "utterance_id": record.get("utterance_id", name),
        "text": record.get("text"),
        "speaker": record.get("speaker"),
        "audio": audio,
        **({"begin": offset, "seconds": record.get("duration")} if offset else {}),
    }


def _of_lhotse(cut: dict[str, Any]) -> Iterator[dict[str, Any] | str]:
    recording, said = cut.get("recording"), cut.get("supervisions")
    recording = recording if isinstance(recording, dict) else {}
    sources = recording.get("sources") or [None]
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in (*said, *sources)):
        yield "has no recording with supervisions, as cuts of Lhotse have"
        return
    channels = sum(len(source.get("channels") or [0]) for source in sources)
    for number, one in enumerate(said):
        starts = [finite_number(each.get("start", 0.0)) for each in (cut, one)]
        begin = None if None in starts else sum(filter(None, starts))
        seconds = finite_number(one.get("duration", cut.get("duration")))
        missing = (finite_number(recording.get("duration")) or 0.0) - (seconds or 0.0)
        whole = begin == 0 and channels == 1 and abs(missing) < _ROUNDING
        yield {
            "utterance_id": cut.get("id") if len(said) == 1 else f"{cut.get('id')}-{number}",
            "text": one.get("text"),
            "speaker": one.get("speaker"),
            "audio": sources[0].get("source") if sources[0].get("type", "file") == "file" else None,
            **({} if whole else {"begin": begin, "seconds": seconds}),
            **({"channel": one.get("channel", cut.get("channel", 0))} if channels > 1 else {}),
        }


def _part(folder: Path, record: dict[str, Any]) -> Utterance | LeftOut | list[str]:
    """An utterance, which is left out if it has no recording, or the problems of its line."""
    text, audio, channel, speaker = (record.get(key) for key in ("text", "audio", "channel", "speaker"))
    begin, seconds = (finite_number(record.get(key)) for key in ("begin", "seconds"))
    wrong = {
        "has no text": not isinstance(text, str),
        "has no path of an audio file": not isinstance(audio, str) or "\0" in audio,
        "has no start and duration in seconds": "begin" in record and (begin is None or seconds is None),
        "'channel' is not a number": type(channel) not in (int, type(None)),
    }
    if problems := [problem for problem, is_there in wrong.items() if is_there]:
        return problems
    found, name = found_recording(str(audio), folder), str(record.get("utterance_id"))
    if found is None:
        return LeftOut("no_recording", name)
    span = None if begin is None or seconds is None else (begin, begin + seconds)
    return Utterance(name, found, str(text), None if speaker is None else str(speaker), span=span, channel=channel)
