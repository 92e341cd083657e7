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

import time
from typing import Annotated, Any

from tasks.command import StageCommand
from tasks.errors import ParameterError
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, write_nbest
from tasks.speech.rescoring.settings import FuseSettings
from tasks.speech.word_errors.error_counts_file import error_warnings, measure_errors, shown_errors
from tasks.speech.word_errors.references import measure_overlap
from tasks.speech.word_errors.word_error_rate_command import CELL, FusedFiles, listing_path

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
    measured = _fused(files, settings)
    weights = ""
    if files.model:
        weights = f"; LM weight {measured['lm_weight']:g}, insertion bonus {measured['insertion_bonus']:g}"
        if measured["internal_lm"] != "none":
            weights += f", {measured['internal_lm']} weight {measured['internal_lm_weight']:g}"
        if dev := measured.get("dev"):
            weights += f" (dev {dev['wer']:.2%}, alone {dev['wer_alone']:.2%})"
    shown = f"{shown_errors(measured)}{weights}; real-time factor {measured['real_time_factor']:.3f}"
    report = Report(measured, error_warnings(measured), settings.word_errors.seed, shown)
    if measured["synthetic_speech"]:
        report.warn("the speech is synthesised; its word error rates do not hold for recorded speech")
    return report


def _fused(files: FuseFiles, settings: FuseSettings) -> dict[str, Any]:
    """All numbers of the report; writes the requested files."""
    from tasks.speech.fusion.fusion_weights import NAMES, fusion_scorers, read_weights, tuned_weights, weighted
    from tasks.speech.recogniser.encoded_speech import read_transcribed
    from tasks.speech.recogniser.folder import load_recogniser
    from tasks.speech.search.beam_search import beam_search

    recogniser = load_recogniser(files.recogniser)
    test, units = read_transcribed(files.test, files.test_manifest, recogniser), recogniser.units
    measured: dict[str, Any] = {
        **dict.fromkeys(NAMES),
        "internal_lm": settings.fusion.internal_lm if files.model else None,
        "recogniser_hash": recogniser.hash,
        "units_hash": units.hash,
        "synthetic_speech": test.synthetic,
        "overlap": None,
    }
    # Cheap steps that can fail come before the search.
    groups = files.word_groups(test.references, files.test_manifest, settings.word_errors)
    if files.training_text:
        measured["overlap"] = measure_overlap(test.references.values(), files.training_text)
    fusion = None
    if files.model:
        given = read_weights(files.weights, settings, recogniser) if files.weights else None
        scorers, vocabulary = fusion_scorers(files.model, settings.fusion.internal_lm, recogniser)
        measured["model_vocabulary_hash"] = vocabulary
        if given is None:
            dev = read_transcribed(str(files.dev), str(files.dev_manifest), recogniser)
            given, measured["dev"] = tuned_weights(scorers, dev, settings, recogniser)
        measured |= given.by_name
        fusion = weighted(scorers, given.by_name)
    started = time.perf_counter()
    decoded = beam_search(recogniser.model, units.blank, test.frames, settings.search, fusion)
    seconds = time.perf_counter() - started
    lists = dict(zip(test.utterance_ids, decoded, strict=True))
    texts = {name: units.decode(hypotheses[0].units) for name, hypotheses in lists.items()}
    errors = files.count(test.references, texts, groups, listing_path(files.output))
    measured |= measure_errors(errors, settings.word_errors)
    nbest = []
    for name, hypotheses in lists.items():
        # Units that spell the same words are merged, with their best score.
        scores: dict[str, float] = {}
        for hypothesis in hypotheses:
            scores.setdefault(units.decode(hypothesis.units), hypothesis.score)
        nbest.append(NbestList(name, test.references[name], tuple(ScoredHypothesis(*each) for each in scores.items())))
    write_nbest(files.output, nbest)
    audio_seconds = sum(test.seconds.values())
    return measured | {
        "audio_seconds": audio_seconds,
        "decode_seconds": seconds,
        "real_time_factor": seconds / audio_seconds if audio_seconds else None,
    }


class FuseCommand(StageCommand[FuseSettings, FuseFiles]):
    """The stage; settings of fusion have no use without a language model."""

    def unused(self, files: FuseFiles) -> list[str]:
        """The fields of the settings that have no use with these files."""
        return [] if files.model else ["fusion"]


SECTIONS = {"search": "speech.search", "fusion": "speech.fusion", "word_errors": "speech.word_errors"}
COMMAND = FuseCommand("fuse", fuse, FuseSettings, FuseFiles, SECTIONS, labels=CELL, seed=None)
