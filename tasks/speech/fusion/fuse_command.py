"""Decode encoded speech with a recogniser, fused with a language model inside the beam search.

The speech comes from 'palimpsest encode-speech', and the references from the manifest of the same
speech. Without --model, the recogniser decodes alone. With --model, fusion has weights: for the
language model, for each word (insertion bonus), and for the recogniser's internal language model
(fusion.internal_lm). They are those of --weights, a file of 'palimpsest tune-fusion'. Use one file
for all language models that you compare.

The hypotheses are n-best lists, and as private as the spoken words.

examples:
  palimpsest fuse --recogniser models/recogniser --test test.safetensors --test-manifest test.jsonl --output alone.jsonl
  palimpsest fuse --recogniser models/recogniser --test test.safetensors --test-manifest test.jsonl
      --model models/adapted --weights weights.json --output fused.jsonl --report fused.json
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
from tasks.speech.word_errors.error_report import error_warnings, measure_errors, shown_errors
from tasks.speech.word_errors.word_error_rate_command import CELL, FusedFiles

SUMMARY = "decode encoded speech, fused with a language model"


class FuseFiles(FusedFiles):
    """Encoded speech with its references, the models, and the output files."""

    recogniser: Annotated[str, READ]
    """recogniser that encoded the speech"""
    weights: Annotated[str | None, READ] = None
    """weights of the language model: a file of 'palimpsest tune-fusion'"""
    test: Annotated[str, READ]
    """encoded speech to decode"""
    test_manifest: Annotated[str, READ]
    """manifest or n-best lists with the references of --test"""
    output: Annotated[str, WRITE]
    """file for the n-best lists (JSON lines), private; their aligned errors go to a second file, with the ending
    .errors.txt"""


def fuse(settings: FuseSettings, files: FuseFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Decode test, write the hypotheses and print the result."""
    files.check_model("weights")
    if files.model and not files.weights:
        raise ParameterError("--model needs weights; give --weights FILE, which 'palimpsest tune-fusion' finds on dev")
    from tasks.speech.fusion.fusion_weights import NAMES, fusion_scorers, read_weights, weighted
    from tasks.speech.recogniser.encoded_speech import read_transcribed
    from tasks.speech.recogniser.recogniser import load_recogniser
    from tasks.speech.search.beam_search import beam_search
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    recogniser = load_recogniser(files.recogniser)
    test, units = read_transcribed(files.test, files.test_manifest, recogniser), recogniser.units
    measured: dict[str, Any] = {
        **dict.fromkeys(NAMES),
        "internal_lm": settings.fusion.internal_lm if files.model else None,
        "recogniser_hash": recogniser.hash,
        "synthetic_speech": test.synthetic,
        "overlap": files.overlap(test.references),
    }
    # Cheap steps that can fail come before the search.
    groups = files.word_groups(test.references, files.test_manifest, settings.word_errors)
    fusion, weights = None, ""
    if files.model:
        given = read_weights(str(files.weights), settings, recogniser)
        scorers = fusion_scorers(files.model, settings.fusion.internal_lm, recogniser)
        fusion, weights = weighted(scorers, given), "".join(f"; {name} {value:g}" for name, value in given.items())
        measured |= given
    started = time.perf_counter()
    decoded = beam_search(recogniser.model, units.blank, test.frames, settings.search, fusion)
    seconds = time.perf_counter() - started
    nbest = []
    for name, hypotheses in zip(test.tensors, decoded, strict=True):
        # Units that spell the same words are merged, with their best score.
        scores: dict[str, float] = {}
        for hypothesis in hypotheses:
            scores.setdefault(units.decode(hypothesis.units), hypothesis.score)
        nbest.append(NbestList(name, test.references[name], tuple(ScoredHypothesis(*each) for each in scores.items())))
    texts = {one.utterance_id: one.hypotheses[0].text for one in nbest}
    errors = files.count(test.references, texts, groups, files.output)
    write_nbest(files.output, nbest)
    audio_seconds = sum(test.seconds.values())
    measured |= measure_errors(errors, settings.word_errors) | {
        "real_time_factor": seconds / audio_seconds if audio_seconds else None,
    }
    shown = f"{shown_errors(measured)}{weights}; real-time factor {measured['real_time_factor']:.3f}"
    report = Report(measured, error_warnings(measured), settings.word_errors.seed, shown)
    if test.synthetic:
        report.warn("the speech is synthesised; its word error rates do not hold for recorded speech")
    return report


class FuseCommand(StageCommand[FuseSettings, FuseFiles]):
    """The stage; settings of fusion have no use without a language model."""

    def unused(self, files: FuseFiles) -> list[str]:
        """The fields of the settings that have no use with these files."""
        return [] if files.model else ["fusion"]


SECTIONS = {"search": "speech.search", "fusion": "speech.fusion", "word_errors": "speech.word_errors"}
COMMAND = FuseCommand("fuse", fuse, FuseSettings, FuseFiles, SECTIONS, labels=CELL, seed=None)
