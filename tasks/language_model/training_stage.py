"""What the commands ``pretrain`` and ``adapt`` have in common: a text in, a trained model folder and a report out."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.language_model.encoded_text import EncodedText, MarkerUse, encode_text
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training_options import threads_of
from tasks.reports.cell import Cell
from tasks.reports.stage_report import StageReport, recorded_stage

if TYPE_CHECKING:
    from tasks.language_model.training import TrainingRecord
    from tasks.language_model.transformer import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

_DEFAULT_LOG_EVERY_STEPS = 10


@dataclass(frozen=True)
class TrainingStage:
    """One training run as a stage."""

    name: str
    """Name of the command."""
    cell: Cell
    settings: TrainingSettings
    seed: int
    markers: MarkerUse
    private: bool
    """Whether the model is written for its owner alone."""
    parameters: dict[str, Any]
    """What the report records."""
    inputs: list[str]
    """Files and folders the model comes from besides ``--text`` and ``--valid``."""
    build: Callable[[], "tuple[TransformerLanguageModel, Vocabulary]"]
    """Makes or reads the model to begin with."""


def run_training_stage(arguments: argparse.Namespace, stage: TrainingStage) -> None:
    """Read the texts, train, write the model folder and the report, and print one line."""
    from tasks.language_model.model_folder import check_replaceable, save_model
    from tasks.torch_setup import set_up_torch

    check_replaceable(arguments.output)
    threads = threads_of(arguments)
    set_up_torch(threads)
    with recorded_stage(
        stage.name,
        arguments.report,
        cell=stage.cell.as_dict(),
        parameters=stage.parameters,
        seed=stage.seed,
        inputs=[*stage.inputs, *(path for path in (arguments.text, arguments.valid) if path)],
        outputs=[arguments.output],
    ) as report:
        model, vocabulary = stage.build()
        text = encode_text(arguments.text, vocabulary, stage.markers)
        valid = encode_text(arguments.valid, vocabulary) if arguments.valid else None
        record = _train(arguments, stage, model, text, valid, report)
        save_model(arguments.output, model, vocabulary, private=stage.private)
        _measure(report, record, model, text, vocabulary, stage, threads)
    _say(arguments, stage, record, text)


def _train(
    arguments: argparse.Namespace,
    stage: TrainingStage,
    model: "TransformerLanguageModel",
    text: EncodedText,
    valid: EncodedText | None,
    report: StageReport,
) -> "TrainingRecord":
    """Train, with the curve going to the cell's MLflow run while it grows where ``tracking`` says so."""
    from tasks.language_model.training import train

    options: dict[str, Any] = {"valid": valid, "title": stage.name}
    if not (arguments.params and arguments.report):
        return train(model, text, stage.settings, stage.seed, **options, log_every_steps=_DEFAULT_LOG_EVERY_STEPS)
    from tasks.params import read_sections
    from tasks.reports.live_run import live_run
    from tasks.reports.run_key import lineage_of

    log_every_steps = read_sections(arguments.params, ["tracking"])["tracking"].log_every_steps
    with live_run(arguments.params, stage.cell, lineage_of(report)) as live:
        record = train(
            model, text, stage.settings, stage.seed, **options, log_every_steps=log_every_steps, on_log=live.log
        )
    if live.warning:
        report.warn(live.warning)
    return record


def _measure(
    report: StageReport,
    record: "TrainingRecord",
    model: "TransformerLanguageModel",
    text: EncodedText,
    vocabulary: "Vocabulary",
    stage: TrainingStage,
    threads: int,
) -> None:
    report.measure(
        steps=record.steps,
        epochs=stage.settings.epochs,
        tokens=record.tokens,
        tokens_per_second=None if record.tokens_per_second is None else round(record.tokens_per_second, 1),
        train_seconds=round(record.train_seconds, 3),
        parameters_count=model.parameter_count(),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        sentences=text.sentences,
        empty_lines=text.empty_lines,
        words=text.words,
        unknown_words=text.unknown_words,
        markers=text.markers,
        marker_use=stage.markers,
        arithmetic=record.arithmetic,
        threads=threads,
        curve=record.curve,
    )
    if text.marker_like:
        report.warn(
            f"the text holds {text.marker_like} marker-like strings such as [MASK] and was read as plain text, where "
            "they are ordinary words"
        )


def _say(arguments: argparse.Namespace, stage: TrainingStage, record: "TrainingRecord", text: EncodedText) -> None:
    losses = [point["valid_loss"] for point in record.curve if "valid_loss" in point]
    valid = ""
    if losses:
        from math import exp

        valid = f"; valid perplexity {exp(losses[0]):.1f} -> {exp(losses[-1]):.1f}"
    rate = record.tokens_per_second or 0.0
    print(
        f"{stage.name}: {text.sentences:,} sentences, {record.steps:,} steps, {record.tokens:,} tokens at {rate:,.0f} "
        f"a second{valid}; model in {arguments.output}",
        file=sys.stderr,
    )
    if text.marker_like:
        print(
            f"warning: the text holds {text.marker_like} marker-like strings such as [MASK] and was read as plain "
            "text; for masked text give --markers token or --markers ignore",
            file=sys.stderr,
        )
