"""The stages ``pretrain`` and ``adapt`` for a causal language model of Hugging Face's.

Pretraining takes the model as it comes, and measures it on the validation text where there is one. An adaptation trains
it on sentences of normalised words, one by one, so that it learns what the perplexity is measured on. It runs in one
process, without checkpoints.
"""

import argparse
import sys
from collections.abc import Mapping
from math import exp
from typing import Any

from tasks.errors import ModelError
from tasks.files.paths_apart import refuse_shared_paths
from tasks.language_model.causal_lm.folder import (
    KIND,
    CausalRecord,
    add_markers,
    load,
    read_record,
    save_adapted,
    save_reference,
)
from tasks.language_model.causal_lm.word_pieces import OpenVocabulary, markers_in
from tasks.language_model.downstream_model import KIND_SECTION, section_of_kind
from tasks.language_model.encoded_text import encode_text, marker_use_of
from tasks.language_model.generic_mixture import check_generic_share, mix_generic_text
from tasks.language_model.kind_settings import CausalAdaptation, CausalLanguageModelSettings
from tasks.language_model.marker_warning import warn_in_report, warn_user
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.setting_options import overridden
from tasks.parameters.parameter_file import read_sections
from tasks.records.cell import Cell, cell_of
from tasks.records.stage_report import StageReport, recorded_stage
from tasks.settings.checks import as_plain, check_settings
from tasks.threads import available_cores, threads_of
from tasks.training.live_curve import live_curve, log_every_steps

_SECTION = section_of_kind(KIND)
_TRAINING = "language_model.adaptation"


def pretrain(arguments: argparse.Namespace) -> None:
    """Write the folder that names the model, and the report, and print one line."""
    base = read_sections(arguments.params, [_SECTION])[_SECTION] if arguments.params else None
    values = overridden(arguments, CausalLanguageModelSettings, base)
    if arguments.model:
        # Another model than the parameter file's has not its file in GGUF.
        values["gguf_file"] = arguments.gguf_file
    settings: CausalLanguageModelSettings = check_settings(CausalLanguageModelSettings, values, "causal_lm options")
    refuse_shared_paths([("model", settings.model)], [("--output", arguments.output)], replaced=True)
    check_replaceable(arguments.output)
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads_of(arguments, available_cores()))
    with recorded_stage(
        "pretrain",
        arguments.report,
        cell=Cell().as_dict(),
        parameters={KIND_SECTION: KIND, _SECTION: as_plain(settings)},
        inputs=[arguments.valid] if arguments.valid else [],
        outputs=[arguments.output],
    ) as report:
        causal = save_reference(arguments.output, settings)
        curve = []
        if arguments.valid:
            from tasks.language_model.causal_lm.training import mean_loss

            vocabulary = OpenVocabulary()
            valid = causal.pieces.of_text(encode_text(arguments.valid, vocabulary), vocabulary)
            curve = [{"step": 0, "epoch": 0.0, "valid_loss": mean_loss(causal, valid)}]
        parameters = sum(weight.numel() for weight in causal.model.parameters())
        report.measure(
            parameters_count=parameters,
            vocabulary_size=causal.pieces.size,
            vocabulary_hash=causal.pieces.hash,
            curve=curve,
        )
    measured = f"; valid perplexity {exp(curve[0]['valid_loss']):.1f}" if curve else ""
    print(
        f"pretrain: {settings.model} as it comes, {parameters:,} parameters{measured}; model in {arguments.output}",
        file=sys.stderr,
    )


def adapt(arguments: argparse.Namespace) -> None:
    """Train a model further, write it and the report, and print one line.

    Raises ``ModelError`` where the model has an update of low rank already and is to get another.
    """
    settings, share = _adaptation(arguments)
    check_replaceable(arguments.output)
    check_generic_share(share, arguments.generic_text)
    generic = arguments.generic_text if share else None
    markers = arguments.markers or marker_use_of(arguments.method)
    cell = cell_of(arguments)
    seed = 1 if cell.seed is None else cell.seed
    from tasks.torch_setup import set_up_torch

    threads = threads_of(arguments, available_cores())
    set_up_torch(threads)
    with recorded_stage(
        "adapt",
        arguments.report,
        cell=cell.as_dict(),
        parameters={
            KIND_SECTION: KIND,
            _SECTION: {"adaptation": as_plain(settings)},
            "markers": markers,
            "generic_share": share,
        },
        seed=seed,
        inputs=[path for path in (arguments.model, arguments.text, arguments.valid, generic) if path],
        outputs=[arguments.output],
    ) as report:
        vocabulary = OpenVocabulary()
        text = encode_text(arguments.text, vocabulary, markers)
        mixed = mix_generic_text(text, generic, vocabulary, share, seed)
        causal, record = _base(arguments.model, settings)
        add_markers(causal, [*record.markers, *(m for m in markers_in(text) if m not in record.markers)])
        causal.model.requires_grad_(True)
        if settings.lora is not None:
            from tasks.language_model.causal_lm.training import add_update

            causal = add_update(causal, settings.lora, seed)
        pieces = causal.pieces.of_text(mixed.text, vocabulary)
        valid = None
        if arguments.valid:
            valid = causal.pieces.of_text(encode_text(arguments.valid, vocabulary), vocabulary)
        trained = _train(arguments, causal, pieces, settings, seed, valid, report)
        save_adapted(arguments.output, causal, record, full=settings.lora is None, private=arguments.private)
        report.measure(
            **trained,
            vocabulary_size=causal.pieces.size,
            vocabulary_hash=causal.pieces.hash,
            sentences=text.sentences,
            empty_lines=text.empty_lines,
            words=text.words,
            markers=text.markers,
            marker_use=markers,
            generic_sentences=mixed.generic_sentences,
            generic_targets=mixed.generic_targets,
            threads=threads,
        )
        warn_in_report(report, text.marker_like)
    _say(arguments, trained, text.sentences)
    warn_user(text.marker_like)


def _adaptation(arguments: argparse.Namespace) -> tuple[CausalAdaptation, float]:
    """How to train, and the share of generic text."""
    given = read_sections(arguments.params, [_SECTION, _TRAINING]) if arguments.params else {}
    base = given[_SECTION].adaptation if given else None
    values = overridden(arguments, CausalAdaptation, base)
    if arguments.full:
        values["lora"] = None
    share = arguments.generic_share
    if share is None:
        share = given[_TRAINING].generic_share if given else 0.0
    return check_settings(CausalAdaptation, values, "causal_lm options"), share


def _base(folder: str, settings: CausalAdaptation) -> tuple[Any, CausalRecord]:
    from pathlib import Path

    if settings.lora is not None and read_record(Path(folder)).adapted == "update":
        raise ModelError(
            f"model folder {folder!r} has an update of low rank already; adapt the model that it was made from, or "
            "train every weight with --full"
        )
    return load(folder)


def _train(
    arguments: argparse.Namespace,
    causal: Any,
    pieces: Any,
    settings: CausalAdaptation,
    seed: int,
    valid: Any,
    report: StageReport,
) -> dict[str, Any]:
    """Train, with the curve going to the cell's MLflow run while it grows where ``tracking`` says so."""
    from tasks.language_model.causal_lm.training import train

    every = log_every_steps(arguments)
    with live_curve(arguments, cell_of(arguments), report) as on_log:
        return train(causal, pieces, settings, seed, valid=valid, log_every_steps=every, on_log=on_log)


def _say(arguments: argparse.Namespace, trained: Mapping[str, Any], sentences: int) -> None:
    losses = [point["valid_loss"] for point in trained["curve"] if "valid_loss" in point]
    valid = f"; valid perplexity {exp(losses[0]):.1f} -> {exp(losses[-1]):.1f}" if losses else ""
    print(
        f"adapt: {sentences:,} sentences, {trained['steps']:,} steps, {trained['tokens']:,} words at "
        f"{trained['tokens_per_second'] or 0:,.0f} a second{valid}; model in {arguments.output}",
        file=sys.stderr,
    )
