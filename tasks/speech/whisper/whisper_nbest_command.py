"""Decode recordings with Whisper to n-best lists, which 'palimpsest rescore' chooses from with a language model.

The model is a name on the hub (openai/whisper-tiny.en), a folder, package:NAME/PATH, or an original checkpoint of
OpenAI's (tiny.en.pt; its vocabulary comes from --vocabulary or the installed package openai-whisper). Scores are
log-probabilities in nats, corrected for the length as in Whisper's own code: the mean over the pieces of a hypothesis,
times the pieces of the best one. Hypotheses that differ in case and punctuation only are one. Whisper writes numbers
in digits and abbreviates titles: --no-digits makes it spell numbers out; "Mr." stays, and is counted. Recordings
longer than 30 s are cut where it is quiet, and named in the report. The lists are private (mode 0600).

examples:
  palimpsest whisper-nbest --manifest test/manifest.jsonl --model openai/whisper-tiny.en --output test.jsonl.gz
  palimpsest whisper-nbest --manifest test/manifest.jsonl --model tiny.en.pt --vocabulary gpt2.tiktoken --no-digits \\
      --output test.jsonl.gz
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.records.cell import add_cell_options, cell_of
from tasks.speech.whisper.settings import WhisperSettings

if TYPE_CHECKING:
    from tasks.speech.whisper.transcription import Transcripts

SUMMARY = "decode recordings with Whisper to n-best lists"
READS = ("manifest", "model", "vocabulary")
WRITES = ("output",)
_NAMED = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file; only its section resources is read")
    parser.add_argument("--manifest", metavar="FILE", required=True, help="recordings: a file of JSON lines")
    parser.add_argument("--model", required=True, help="Whisper model: hub name, folder, package:NAME/PATH or .pt file")
    parser.add_argument("--vocabulary", metavar="FILE", help=".tiktoken file that belongs to a .pt file")
    parser.add_argument("--output", metavar="FILE", required=True, help="lists to write: .jsonl or .jsonl.gz")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON, numbers only)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options(parser, WhisperSettings, "decoding", leave_out=["no_digits"])
    parser.add_argument(
        "--no-digits",
        action="store_true",
        default=None,
        help="let Whisper write no digits and no signs that are read aloud (%%, $, &), so that it spells them out",
    )
    add_cell_options(parser, "dataset")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result: none."""
    return []


def run(arguments: argparse.Namespace) -> None:
    """Decode the recordings and write lists and report."""
    from tasks.model_source import PACKAGE_PREFIX, locate_model
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain, check_settings
    from tasks.speech.audio.manifest import read_manifest
    from tasks.speech.rescoring.nbest_lists import write_nbest
    from tasks.threads import available_cores, threads_of
    from tasks.torch_setup import set_up_torch

    settings: WhisperSettings = check_settings(
        WhisperSettings, overridden(arguments, WhisperSettings), "whisper-nbest options"
    )
    threads = threads_of(arguments, available_cores())
    utterances = read_manifest(arguments.manifest)
    set_up_torch(threads)
    located = locate_model(arguments.model) if arguments.model.startswith(PACKAGE_PREFIX) else arguments.model
    files = [path for path in (located, arguments.vocabulary) if path and Path(path).exists()]
    with recorded_stage(
        "whisper-nbest",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={"model": arguments.model, "decoding": as_plain(settings)},
        inputs=[arguments.manifest, *files],
        outputs=[arguments.output],
    ) as report:
        from tasks.speech.whisper.recogniser import load_whisper
        from tasks.speech.whisper.transcription import transcribe

        recogniser = load_whisper(arguments.model, arguments.vocabulary)
        transcripts = transcribe(recogniser, utterances, settings)
        write_nbest(arguments.output, transcripts.lists, private=True)
        synthetic = any(utterance.synthetic for utterance in utterances)
        hypotheses = sum(len(one.hypotheses) for one in transcripts.lists)
        report.measure(
            utterances=len(transcripts.lists),
            hypotheses=hypotheses,
            windowed=len(transcripts.windowed),
            unfinished=len(transcripts.unfinished),
            best_with_digits=transcripts.with_digits,
            references_with_digits=transcripts.references_with_digits,
            abbreviated_titles=transcripts.abbreviations,
            mixed_down=transcripts.tally["mixed_down"],
            resampled=transcripts.tally["resampled"],
            synthetic=synthetic,
            model_parameters=sum(weights.numel() for weights in recogniser.model.parameters()),
            model_commit=recogniser.commit,
            audio_seconds=round(transcripts.audio_seconds, 3),
            decode_seconds=round(transcripts.decode_seconds, 3),
            real_time_factor=transcripts.decode_seconds / transcripts.audio_seconds,
            threads=threads,
        )
        warnings = _warnings(transcripts)
        if synthetic:
            warnings.append("the speech is synthetic")
        for warning in warnings:
            report.warn(warning)
    print(
        f"whisper-nbest: {len(transcripts.lists):,} utterances, {hypotheses / len(transcripts.lists):.1f} hypotheses "
        f"each, {transcripts.audio_seconds / 60:.1f} minutes of {'synthetic ' if synthetic else ''}speech, real-time "
        f"factor {transcripts.decode_seconds / transcripts.audio_seconds:.3f}; {arguments.output}",
        file=sys.stderr,
    )
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _warnings(transcripts: "Transcripts") -> list[str]:
    warnings = []
    if transcripts.windowed:
        warnings.append(
            f"{len(transcripts.windowed)} recordings are longer than one window and were cut: "
            f"{_named(transcripts.windowed)}"
        )
    if transcripts.unfinished:
        warnings.append(
            f"{len(transcripts.unfinished)} utterances did not end within the pieces that are allowed: "
            f"{_named(transcripts.unfinished)}"
        )
    if transcripts.with_digits and not transcripts.references_with_digits:
        warnings.append(
            f"{transcripts.with_digits} best hypotheses have digits or signs such as %, and no reference has: "
            "--no-digits spells them out"
        )
    if transcripts.abbreviations:
        warnings.append(
            f"{transcripts.abbreviations} titles are abbreviated (Mr., Dr.); each counts as an error where the "
            "reference spells it out"
        )
    return warnings


def _named(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
