"""Decode recordings with Whisper, and write n-best lists of hypotheses for 'palimpsest rescore'.

--model is a name on the hub, a folder, or package:NAME/PATH, a folder in an installed package.
Scores are log-probabilities in nats, corrected for length as in Whisper's own code. A score is the
mean over the pieces of the hypothesis, times the number of pieces of the best one. Hypotheses that
differ only in case and punctuation count as one.

Whisper writes numbers in digits and abbreviates titles. --set no_digits=true makes it spell numbers
out. Titles such as Mr. remain, and the report counts them. Recordings longer than 30 s are cut at
quiet places, and the report names them. The lists are private (mode 0600).

example:
  palimpsest whisper-nbest --manifest test/manifest.jsonl --model openai/whisper-tiny.en --set no_digits=true \\
      --output test.jsonl.gz
"""

import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import WhisperSettings

SUMMARY = "decode recordings with Whisper, and write n-best lists"
_NAMED = 10


class WhisperFiles(StageFiles):
    """Recordings, the model, and the output file."""

    manifest: Annotated[str, READ]
    """manifest of the recordings (JSON lines)"""
    model: Annotated[str, READ_MODEL]
    """Whisper model: hub name, folder or package:NAME/PATH"""
    output: Annotated[str, WRITE]
    """file for the n-best lists: .jsonl or .jsonl.gz"""


def whisper_nbest(settings: WhisperSettings, files: WhisperFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Decode the recordings and write the lists."""
    from tasks.speech.audio.manifest import read_manifest
    from tasks.speech.rescoring.nbest_lists import write_nbest
    from tasks.torch_setup import set_up_torch

    utterances = read_manifest(files.manifest)
    set_up_torch(resources.threads)
    from tasks.speech.whisper.recogniser import load_whisper
    from tasks.speech.whisper.transcription import transcribe

    recogniser = load_whisper(files.model)
    found = transcribe(recogniser, utterances, settings)
    write_nbest(files.output, found.lists)
    synthetic = any(utterance.synthetic for utterance in utterances)
    hypotheses, counts = sum(len(one.hypotheses) for one in found.lists), found.counts()
    report = Report().measure(
        utterances=len(found.lists),
        hypotheses=hypotheses,
        windowed=len(found.windowed),
        unfinished=len(found.unfinished),
        **counts,
        mixed_down=found.tally["mixed_down"],
        resampled=found.tally["resampled"],
        synthetic=synthetic,
        model_parameters=sum(weights.numel() for weights in recogniser.model.parameters()),
        model_commit=recogniser.commit,
        audio_seconds=round(found.audio_seconds, 3),
        decode_seconds=round(found.decode_seconds, 3),
        real_time_factor=found.decode_seconds / found.audio_seconds,
        threads=resources.threads,
    )
    for names, what in (
        (found.windowed, "recordings are longer than one window and were cut"),
        (found.unfinished, "utterances did not end within the pieces that are allowed"),
    ):
        if names:
            more = ", ..." if len(names) > _NAMED else ""
            report.warn(f"{len(names)} {what}: {', '.join(names[:_NAMED])}{more}")
    if counts["best_with_digits"] and not counts["references_with_digits"]:
        report.warn(
            f"{counts['best_with_digits']} best hypotheses have digits or signs such as %, and no reference has: "
            "no_digits spells them out"
        )
    if titles := counts["abbreviated_titles"]:
        report.warn(
            f"{titles} titles are abbreviated (Mr., Dr.); each counts as an error where the reference spells it out"
        )
    if synthetic:
        report.warn("the speech is synthetic")
    print(
        f"whisper-nbest: {len(found.lists):,} utterances, {hypotheses / len(found.lists):.1f} hypotheses each, "
        f"{found.audio_seconds / 60:.1f} minutes of {'synthetic ' if synthetic else ''}speech, real-time factor "
        f"{found.decode_seconds / found.audio_seconds:.3f}; {files.output}",
        file=sys.stderr,
    )
    return report


COMMAND = StageCommand(
    name="whisper-nbest",
    stage=whisper_nbest,
    settings=WhisperSettings,
    files=WhisperFiles,
    section={},
    labels=("dataset",),
)
