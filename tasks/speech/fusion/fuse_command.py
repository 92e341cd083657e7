"""Decode encoded speech with a recogniser, fused with a language model inside the beam search.

The speech comes from 'palimpsest encode-speech', and the references from the manifest of the same
speech. Without --model, the recogniser decodes alone. With --model, fusion has weights: for the
language model, for each word (insertion bonus), and for the recogniser's internal language model
(fusion.internal_lm). With --dev and --dev-manifest the command finds them on dev, by word error
rate. Or it takes those of --weights, a file of 'palimpsest tune-fusion'; use one file for all
language models that you compare.

The hypotheses are n-best lists, and as private as the spoken words.

examples:
  palimpsest fuse --recogniser models/recogniser --test test.safetensors --test-manifest test.jsonl --output alone.jsonl
  palimpsest fuse --recogniser models/recogniser --dev dev.safetensors --dev-manifest dev.jsonl --test test.safetensors
      --test-manifest test.jsonl --model models/adapted --output fused.jsonl --report fused.json
"""

from typing import Annotated

from tasks.command import StageCommand
from tasks.errors import ParameterError
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.rescore_command import FusedFiles
from tasks.speech.rescoring.settings import FuseSettings

SUMMARY = "decode encoded speech, fused with a language model"


class FuseFiles(FusedFiles):
    """Encoded speech with its references, the models, and the output files."""

    recogniser: Annotated[str, READ]
    """recogniser that encoded the speech"""
    dev: Annotated[str | None, READ] = None
    """encoded speech to find the weights on"""
    dev_manifest: Annotated[str | None, READ] = None
    """manifest or n-best lists with the references of --dev"""
    weights: Annotated[str | None, READ] = None
    """file of 'palimpsest tune-fusion', instead of --dev and --dev-manifest"""
    test: Annotated[str, READ]
    """encoded speech to decode"""
    test_manifest: Annotated[str, READ]
    """manifest or n-best lists with the references of --test"""
    output: Annotated[str, WRITE]
    """file for the n-best lists (JSON lines), private; their aligned errors go to a second file, with the ending
    .errors.txt"""


def fuse(settings: FuseSettings, files: FuseFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Tune the weights, decode test, write the hypotheses and print the result."""
    files.check_model("dev", "dev_manifest", "weights")
    on_dev = files.dev and files.dev_manifest
    if files.model and (bool(files.weights) == bool(on_dev) or (files.weights and files.dev_manifest)):
        raise ParameterError(
            "--model needs weights, and they are never tuned on test; give --dev and --dev-manifest to tune them, or "
            "--weights FILE alone"
        )
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    from tasks.speech.fusion.fuse_stage import fused_numbers
    from tasks.speech.word_errors.error_counts_file import error_warnings, shown_rate

    measured = fused_numbers(files, settings)
    synthetic = " of synthetic speech" if measured["synthetic_speech"] else ""
    weights = ""
    if files.model:
        weights = f"; LM weight {measured['lm_weight']:g}, insertion bonus {measured['insertion_bonus']:g}"
        if measured["internal_lm"] != "none":
            weights += f", {measured['internal_lm']} weight {measured['internal_lm_weight']:g}"
        if dev := measured.get("dev"):
            weights += f" (dev {dev['wer']:.2%}, alone {dev['wer_alone']:.2%})"
    shown = (
        f"word error rate {shown_rate(measured)}: {measured['insertions']:,} insertions, {measured['deletions']:,} "
        f"deletions, {measured['substitutions']:,} substitutions in {measured['words']:,} words of "
        f"{measured['utterances']:,} utterances{synthetic}{weights}; real-time factor "
        f"{measured['real_time_factor']:.3f}"
    )
    report = Report(measured, error_warnings(measured), settings.word_errors.seed, shown)
    if synthetic:
        report.warn("the speech is synthesised; its word error rates do not hold for recorded speech")
    return report


class FuseCommand(StageCommand[FuseSettings, FuseFiles]):
    """The stage; settings of fusion have no use without a language model."""

    def unused(self, files: FuseFiles) -> list[str]:
        """The fields of the settings that have no use with these files."""
        return [] if files.model else ["fusion"]


COMMAND = FuseCommand(
    name="fuse",
    stage=fuse,
    settings=FuseSettings,
    files=FuseFiles,
    section={"search": "speech.search", "fusion": "speech.fusion", "word_errors": "speech.word_errors"},
    labels=("dataset", "technique", "filler", "method", "seed"),
    seed=None,
)
