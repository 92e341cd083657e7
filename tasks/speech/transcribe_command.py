"""Transcribe recordings: WAV, FLAC, OGG, MP3, M4A and other audio, of any sample rate and length.

--model is a Whisper model (hub name, folder, or package:NAME/PATH), --recogniser a folder that
'palimpsest train-recogniser' wrote. Recordings longer than 30 s are cut in pauses, which a voice
detector finds; long pauses are left out. The channels of a recording become their mean. With
--set channels=separate each one is transcribed, such as both sides of a telephone call.

--output has a line of JSON for each recording or channel, which 'palimpsest init' and other commands
read: {"audio": "call.wav", "channel": 0, "text": "good morning"}. Without it the texts are shown.
The file is private (mode 0600). The report has numbers only.

examples:
  palimpsest transcribe --audio call-1.wav call-2.mp3 --model openai/whisper-tiny.en
  palimpsest transcribe --audio call.ogg --recogniser models/recogniser --set channels=separate --output calls.jsonl
"""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import SearchSettings, WhisperSettings

if TYPE_CHECKING:
    from torch import Tensor

SUMMARY = "transcribe recordings by Whisper or by a trained recogniser"
_WINDOW_SECONDS = 30


class TranscribeSettings(Settings):
    """Channels, and the search of each kind of recogniser."""

    channels: Literal["mixed", "separate"] = "mixed"
    """Whether the channels of a recording become their mean, or each one is transcribed."""
    whisper: WhisperSettings = WhisperSettings(beam_width=5, nbest=1, maximum_seconds=36_000)
    search: SearchSettings = SearchSettings()


class TranscribeFiles(StageFiles):
    """Recordings, a recogniser, and the output file."""

    audio: Annotated[list[str], READ]
    """recordings"""
    model: Annotated[str | None, READ_MODEL] = None
    """Whisper model: hub name, folder or package:NAME/PATH"""
    recogniser: Annotated[str | None, READ] = None
    """folder of a trained recogniser"""
    output: Annotated[str | None, WRITE] = None
    """file for the texts (JSON lines)"""


def transcribe(settings: TranscribeSettings, files: TranscribeFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Transcribe each recording.

    Raises ``SpeechError`` for a recording that cannot be read, before any is transcribed; ``ParameterError`` without
    exactly one recogniser.
    """
    from tasks.corpora.text_lines import write_lines
    from tasks.speech.audio.audio_file import audio_facts, read_audio
    from tasks.torch_setup import set_up_torch

    if bool(files.model) == bool(files.recogniser):
        raise ParameterError("give --model or --recogniser: one of them transcribes")
    limit = settings.whisper.maximum_seconds
    facts = {path: audio_facts(path, maximum_seconds=limit) for path in files.audio}
    set_up_torch(resources.threads)
    report = Report()
    rate, text_of = _whisper(files.model, settings) if files.model else _trained(files.recogniser, settings, report)
    started, lines = time.perf_counter(), []
    for path, of in facts.items():
        each = range(of.channels) if settings.channels == "separate" and of.channels > 1 else [None]
        for channel in each:
            text = text_of(read_audio(path, rate, maximum_seconds=limit, channel=channel))
            lines.append({"audio": path} | ({} if channel is None else {"channel": channel}) | {"text": text})
    if files.output:
        write_lines(files.output, (json.dumps(line, ensure_ascii=False) for line in lines), private=True)
        report.shown = f"{len(lines):,} texts of {len(facts):,} recordings in {files.output}"
    else:
        report.shown = "\n".join(": ".join(map(str, line.values())) for line in lines)
    seconds = sum(one.seconds for one in facts.values())
    return report.measure(
        recordings=len(facts),
        texts=len(lines),
        audio_seconds=round(seconds, 3),
        real_time_factor=(time.perf_counter() - started) / seconds,
    )


def _whisper(model: str, settings: TranscribeSettings) -> "tuple[int, Callable[[Tensor], str]]":
    """Whisper's sample rate, and the text of samples by it."""
    from tasks.speech.whisper.recogniser import SAMPLE_RATE, hypotheses_of, load_whisper

    recogniser = load_whisper(model)
    search, width = recogniser.search(settings.whisper), settings.whisper.beam_width
    return SAMPLE_RATE, lambda samples: hypotheses_of(recogniser, samples, search, width)[0].text


def _trained(folder: str | None, settings: TranscribeSettings, report: Report) -> "tuple[int, Callable[[Tensor], str]]":
    """A recogniser's sample rate, and the text of samples by it."""
    from tasks.speech.recogniser.recogniser import load_recogniser
    from tasks.speech.search.beam_search import beam_search
    from tasks.speech.whisper.recogniser import windows_of

    recogniser = load_recogniser(str(folder))
    if recogniser.settings.synthetic:
        report.warn("the recogniser learned from synthesised speech; expect many errors in recorded speech")
    rate, shortest = recogniser.settings.features.sample_rate, recogniser.settings.features.window_samples // 2

    def text(samples: "Tensor") -> str:
        windows = [part for part in windows_of(samples, _WINDOW_SECONDS * rate, rate) if len(part) > shortest]
        encoded = [recogniser.encode([recogniser.features(part)])[0] for part in windows]
        searched = beam_search(recogniser.model, recogniser.units.blank, encoded, settings.search) if encoded else []
        return " ".join(filter(None, (recogniser.units.decode(found[0].units) for found in searched)))

    return rate, text


COMMAND = StageCommand("transcribe", transcribe, TranscribeSettings, TranscribeFiles, section={})
