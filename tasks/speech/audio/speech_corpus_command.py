"""Check recordings and write a manifest of them, or synthesise speech from a text.

The setting source names the data, and the setting kind its form: manifest, librispeech, wsj
(converted from shorten), kaldi or synthetic. A manifest, the default, has JSON lines
{"utterance_id", "audio", "text"}, with audio paths relative to the file. A source of
kind synthetic is a text with one sentence a line, which eSpeak NG speaks.

Recordings are WAV, FLAC, OGG, MP3, AIFF or M4A, of any sample rate. Those that cannot be used are left
out; the report counts and names them. The output is a folder with manifest.jsonl. Recordings stay
where they are. Parts of longer recordings are written to the folder segments next to the
manifest. Synthetic recordings are written next to the manifest, and
marked as synthetic. All of it is readable by you alone (modes 0700 and 0600).

Examples:
  palimpsest speech-corpus --set source=my/manifest.jsonl --output speech/test
  palimpsest speech-corpus --set kind=librispeech --set source=LibriSpeech --set parts=[test-clean] --output test
  palimpsest speech-corpus --set kind=wsj --set source=csr --set folders=[si_et_20] --output speech/eval92
  palimpsest speech-corpus --set kind=synthetic --set source=test.txt --set synthesis.sentences=500 --output speech/test
  palimpsest speech-corpus --params params.yaml --name speech.corpora.chat.test --output speech/test
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tasks.command import StageCommand, StageFiles
from tasks.errors import SpeechError
from tasks.options import Role
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.audio.settings import RecordedSpeech, SpeechSettings, SyntheticSpeech

if TYPE_CHECKING:
    from tasks.speech.audio.manifest import Utterance

_NAMED = 5
"""Left-out utterances that are named, for each reason."""
SUMMARY = "check recordings and write a manifest of them, or synthesise speech"


class SpeechCorpusFiles(StageFiles):
    """The output folder; the source is a setting."""

    output: Annotated[str, Role(writes=True, files=("manifest.jsonl", "segments"))]
    """folder for manifest.jsonl and recordings; kind synthetic replaces an earlier folder of recordings"""


def speech_corpus(
    settings: RecordedSpeech | SyntheticSpeech, files: SpeechCorpusFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Write the manifest.

    Raises ``SpeechError`` if the source is missing or not of its kind, or if nothing in it is usable.
    """
    if isinstance(settings, SyntheticSpeech):
        return _speak(settings, files)
    from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, make_folder
    from tasks.speech.audio import speech_sources
    from tasks.speech.audio.manifest import write_manifest
    from tasks.speech.audio.recordings import usable_recordings

    readers: dict[str, Any] = {
        "manifest": speech_sources.read_any_manifest,
        "librispeech": speech_sources.read_librispeech,
        "wsj": speech_sources.read_wsj_speech,
        "kaldi": speech_sources.read_kaldi,
    }
    found = list(readers[settings.kind](settings))
    usable, left_out = usable_recordings(found, settings.maximum_seconds, Path(files.output) / "segments")
    named = (f"{len(names)} {reason} ({', '.join(names[:_NAMED])})" for reason, names in left_out.items())
    sentence = f"left out: {'; '.join(named)}" if left_out else ""
    if not usable:
        raise SpeechError(f"source {settings.source!r} has no utterance that can be used; {sentence}")
    utterances, lengths = zip(*usable, strict=True)
    folder = make_folder(files.output, private=True)
    os.chmod(folder, PRIVATE_FOLDER_MODE)
    write_manifest(folder / "manifest.jsonl", utterances)
    report = _measured(utterances, sum(lengths), {reason: len(names) for reason, names in left_out.items()})
    report.shown = f"{len(utterances):,} of {len(found):,} utterances, {sum(lengths) / 3600:.2f} hours"
    if sentence:
        report.warn(sentence)
    return report


def _measured(utterances: "Sequence[Utterance]", seconds: float, left_out: dict[str, int]) -> Report:
    from tasks.language_model.normalisation import normalise

    return Report().measure(
        synthetic=any(utterance.synthetic for utterance in utterances),
        utterances=len(utterances),
        words=sum(len(normalise(utterance.text)) for utterance in utterances),
        audio_seconds=round(seconds, 3),
        left_out=left_out,
    )


def _speak(settings: SyntheticSpeech, files: SpeechCorpusFiles) -> Report:
    from tasks.files.separate_paths import refuse_shared_paths
    from tasks.torch_setup import set_up_torch

    refuse_shared_paths([("source", settings.source)], [("--output", files.output)], replaced=True)
    set_up_torch(1)
    from tasks.speech.synthesis.synthetic_corpus import synthesise_corpus

    utterances, seconds, left_out = synthesise_corpus(settings.source, files.output, settings.synthesis)
    report, lines = _measured(utterances, seconds, dict(left_out)), len(utterances) + left_out.total()
    report.seed = settings.synthesis.seed
    report.shown = f"synthetic speech: {len(utterances):,} of {lines:,} lines, {seconds / 60:.1f} minutes"
    return report.measure(lines=lines)


COMMAND = StageCommand(
    "speech_corpus", speech_corpus, SpeechSettings, SpeechCorpusFiles, "{name}", labels=("dataset",),
    named_settings=lambda section: {"kind": "manifest"},
    # A folder of recordings is large, and its files are never outputs.
    files_of_settings=lambda settings: [settings.source] if Path(settings.source).is_file() else [],
)  # fmt: skip
