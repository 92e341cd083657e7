"""Run a recogniser's encoder over recordings, once for all systems that decode them.

'palimpsest fuse', 'palimpsest tune-fusion' and 'palimpsest stream' decode the file that this
command writes. An utterance that is too short for one encoded frame remains in the test set, and
its words will be missing. The file shows which words were spoken. So it is private (mode 0600).

example:
  palimpsest encode-speech --recogniser models/recogniser --manifest test/manifest.jsonl --output test.encoded
"""

from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.recogniser.settings import EncodingSettings

SUMMARY = "encode recordings with a recogniser, once for all systems that decode them"


class EncodingFiles(StageFiles):
    """Recordings, the recogniser, and the output file."""

    recogniser: Annotated[str, READ]
    """recogniser folder of 'palimpsest train-recogniser'"""
    manifest: Annotated[str, READ]
    """manifest of the recordings (JSON lines)"""
    output: Annotated[str, WRITE]
    """file for the encoded speech (safetensors)"""


def encode_speech(settings: EncodingSettings, files: EncodingFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Encode the recordings and write the file."""
    from tasks.speech.audio.manifest import read_manifest
    from tasks.speech.recogniser.encoded_speech import encode_utterances, write_encoded
    from tasks.speech.recogniser.recogniser import load_recogniser
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    recogniser, utterances = load_recogniser(files.recogniser), read_manifest(files.manifest)
    speech, seconds, facts = encode_utterances(recogniser, utterances, settings.maximum_seconds)
    write_encoded(files.output, speech)
    audio_seconds, rate = sum(speech.seconds.values()), recogniser.settings.features.sample_rate
    shown = (
        f"{len(utterances):,} utterances, {audio_seconds / 60:.1f} minutes of speech, real-time factor "
        f"{seconds / audio_seconds:.4f}; {files.output}"
    )
    report = Report(shown=shown).measure(
        utterances=len(utterances),
        without_frames=sum(not len(frames) for frames in speech.tensors.values()),
        synthetic=speech.synthetic,
        recogniser_hash=recogniser.hash,
        audio_seconds=round(audio_seconds, 3),
        real_time_factor=seconds / audio_seconds,
    )
    if speech.synthetic:
        report.warn("the speech is synthetic")
    for count, what in (
        (report.measured["without_frames"], "utterances are too short to be encoded; their words will be missing"),
        (sum(of.channels > 1 for of in facts), "recordings have several channels, which were mixed down"),
        (
            sum(of.sample_rate < rate for of in facts),
            f"recordings have fewer than {rate:,} samples a second, as on the telephone; expect many errors, unless "
            "the recogniser learned from such speech",
        ),
    ):
        if count:
            report.warn(f"{count} {what}")
    return report


COMMAND = StageCommand("encode-speech", encode_speech, EncodingSettings, EncodingFiles, section={}, labels=("dataset",))
