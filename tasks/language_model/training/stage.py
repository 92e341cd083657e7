"""What the commands ``pretrain`` and ``adapt`` have in common: a text in, a trained model folder and a report out."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tasks.language_model.encoded_text import EncodedText, MarkerUse, encode_text
from tasks.language_model.generic_mixture import mix_generic_text
from tasks.language_model.marker_warning import warn_in_report, warn_user
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import TrainingSettings
from tasks.records.cell import Cell
from tasks.records.stage_report import StageReport, recorded_stage
from tasks.training.live_curve import log_every_steps
from tasks.training.options import resources_of
from tasks.training.ranks.plan import plan_ranks
from tasks.training.stage import TrainingFrame

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary
    from tasks.training.record import TrainingRecord


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
    encode: "Callable[[str, Vocabulary], EncodedText] | None" = None
    """Makes tokens of a text file where these are not its words."""
    generic_text: str | None = None
    """Text that is mixed in."""
    generic_share: float = 0.0
    """Share of the targets that it has."""


def run_training_stage(arguments: argparse.Namespace, stage: TrainingStage) -> None:
    """Read the texts, train, write the model folder and the report, and print one line.

    With several devices, one process for each runs the whole command, and the first alone writes. Checkpoints are
    removed when everything is written.
    """
    from tasks.language_model.transformer.folder import save_model
    from tasks.torch_setup import set_up_torch

    check_replaceable(arguments.output)
    resources = resources_of(arguments)
    plan = plan_ranks(resources.devices, resources.nodes, resources.strategy, resources.threads)
    frame = TrainingFrame(stage.name, arguments, resources, plan)
    if frame.starts_ranks():
        return
    set_up_torch(resources.threads)
    if resources.compile:
        from tasks.language_model.training.compilation import check_compiler

        check_compiler()
    with recorded_stage(
        stage.name,
        frame.report_path,
        cell=stage.cell.as_dict(),
        parameters=stage.parameters,
        seed=stage.seed,
        inputs=[*stage.inputs, *(path for path in (arguments.text, arguments.valid) if path)],
        outputs=[arguments.output],
    ) as report:
        from tasks.language_model.training.identity import training_identity, training_key
        from tasks.language_model.training.trainer import train

        model, vocabulary = stage.build()
        encode = stage.encode or partial(encode_text, markers=stage.markers)
        text = encode(arguments.text, vocabulary)
        valid = (stage.encode or encode_text)(arguments.valid, vocabulary) if arguments.valid else None
        if text.sentences == 1:
            report.warn(f"{arguments.text!r} has one sentence; what is trained on it says nothing")
        mixed = mix_generic_text(text, stage.generic_text, vocabulary, stage.generic_share, stage.seed)
        identity = training_identity(model, vocabulary, mixed.text, stage.settings, stage.seed)
        every = log_every_steps(arguments)
        with frame.checkpoints(identity, lambda: training_key(identity, model, valid, stage.settings, every)) as store:
            with frame.curve(stage.cell, report) as on_log:
                record = train(
                    model,
                    mixed.text,
                    stage.settings,
                    stage.seed,
                    valid=valid,
                    on_log=on_log,
                    log_every_steps=every,
                    title=stage.name,
                    plan=plan,
                    store=store,
                    compiled=resources.compile,
                )
            if plan.is_first:
                save_model(arguments.output, model, vocabulary, private=stage.private)
        _measure(report, record, model, text, vocabulary, stage, resources.threads)
        report.measure(generic_sentences=mixed.generic_sentences, generic_targets=mixed.generic_targets)
        report.measure(
            devices=plan.devices,
            nodes=plan.nodes,
            strategy=plan.strategy,
            compiled=resources.compile,
            resumed_step=record.resumed_step,
            best_step=record.best_step,
            stopped_early=record.stopped_early,
        )
    if plan.is_first:
        # Only now: a run that ends before its report is written can still go on from a checkpoint.
        store.remove()
        _say(arguments, stage, record, text)


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
        **text.counts(),
        marker_use=stage.markers,
        arithmetic=record.arithmetic,
        threads=threads,
        curve=record.curve,
    )
    warn_in_report(report, text.marker_like)


def _say(arguments: argparse.Namespace, stage: TrainingStage, record: "TrainingRecord", text: EncodedText) -> None:
    losses = [point["valid_loss"] for point in record.curve if "valid_loss" in point]
    valid = ""
    if losses:
        from math import exp

        valid = f"; valid perplexity {exp(losses[0]):.1f} -> {exp(losses[-1]):.1f}"
    if record.stopped_early:
        valid += f"; stopped early, with the weights after step {record.best_step:,}"
    rate = record.tokens_per_second or 0.0
    print(
        f"{stage.name}: {text.sentences:,} sentences, {record.steps:,} steps, {record.tokens:,} tokens at {rate:,.0f} "
        f"a second{valid}; model in {arguments.output}",
        file=sys.stderr,
    )
    warn_user(text.marker_like)
