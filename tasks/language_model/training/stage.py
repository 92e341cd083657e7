"""The training of a Transformer as a stage: a text in, a trained model folder and a report out."""

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp
from typing import TYPE_CHECKING

from tasks.language_model.encoded_text import EncodedText, encode_text, warn_of_markers
from tasks.language_model.language_factors import check_weight, exponents_of, factors_of
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import LanguageFactorSettings, MarkerUse, TrainingSettings
from tasks.language_model.vocabulary import Vocabulary
from tasks.records.stage_report import Report
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.training.stage import TrainedFolder, TrainingFrame, checkpoints_of, hash_of, ranks_of_resources

if TYPE_CHECKING:
    from torch import nn

    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.training.loop import TrainingRecord


@dataclass(frozen=True)
class TransformerTraining:
    """One training run of a Transformer."""

    name: str
    """Name of the command."""
    settings: TrainingSettings
    build: Callable[[], "tuple[TransformerLanguageModel, Vocabulary]"]
    """Makes or reads the model to begin with."""
    text: str
    """File to train on."""
    valid: str | None = None
    """Plain text file to measure progress on."""
    markers: MarkerUse = "none"
    encode: "Callable[[str, Vocabulary], EncodedText] | None" = None
    """Makes tokens of a text file where these are not its words."""
    languages: LanguageFactorSettings | None = None
    """What scoring predicts the language of the next word by."""


def train_transformer(
    training: TransformerTraining, files: TrainedFolder, resources: ResourceSettings, frame: TrainingFrame
) -> Report:
    """Read the texts, train, write the model folder, and print one line.

    Of several processes that train together the first alone writes. Checkpoints are removed when everything is written,
    the report among it.
    """
    from tasks.language_model.training.trainer import check_compiler, train
    from tasks.language_model.transformer.model import save_model
    from tasks.language_model.transformer.scoring import class_probabilities
    from tasks.torch_setup import set_up_torch

    check_replaceable(files.output)
    check_weight(training.languages, training.valid)
    plan = ranks_of_resources(resources)
    set_up_torch(resources.threads)
    if resources.compile:
        check_compiler()
    settings = training.settings
    report = Report(seed=settings.seed)
    model, vocabulary = training.build()
    model.languages = None  # a base's are those of another text
    encode = training.encode or partial(encode_text, markers=training.markers)
    text = encode(training.text, vocabulary)
    valid = (training.encode or encode_text)(training.valid, vocabulary) if training.valid else None
    if text.sentences == 1:
        report.warn(f"{training.text!r} has one sentence; what is trained on it says nothing")
    identity = training_identity(model, vocabulary, text, settings, settings.seed)
    every = frame.curve.every_steps
    decisive = {
        "weights": _weights_hash(model),
        "valid": None if valid is None else _text_hash(valid),
        "settings": as_plain(settings),
        "log_every_steps": every,
    }
    with checkpoints_of(files, resources, plan, identity, **decisive) as checkpoints:
        with frame.curve.open() as on_log:
            record = train(
                model,
                text,
                settings,
                settings.seed,
                valid=valid,
                on_log=on_log,
                log_every_steps=every,
                plan=plan,
                checkpoints=checkpoints,
                compiled=resources.compile,
            )
        model.languages = factors_of(training.languages, text, valid, vocabulary, partial(class_probabilities, model))
        if plan.is_first:
            save_model(files.output, model, vocabulary)
    report.measure(
        steps=record.steps,
        epochs=settings.epochs,
        tokens=record.tokens,
        tokens_per_second=None if record.tokens_per_second is None else round(record.tokens_per_second, 1),
        train_seconds=round(record.train_seconds, 3),
        parameters_count=model.parameter_count(),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        **text.counts(),
        marker_use=training.markers,
        arithmetic=record.arithmetic,
        threads=resources.threads,
        curve=record.curve,
        devices=plan.devices,
        nodes=plan.nodes,
        strategy=plan.strategy,
        compiled=resources.compile,
        resumed_step=record.resumed_step,
        best_step=record.best_step,
        stopped_early=record.stopped_early,
        **exponents_of(model.languages),
    )
    if plan.is_first:
        _say(training.name, files.output, record, text)
        warn_of_markers(report, text.marker_like)
        # Only then: a run that ends before its report is written can still go on from a checkpoint.
        frame.when_reported(checkpoints.remove)
    return report


def _say(name: str, output: str, record: "TrainingRecord", text: EncodedText) -> None:
    valid = valid_perplexities(record.curve)
    if record.stopped_early:
        valid += f"; stopped early, with the weights after step {record.best_step:,}"
    rate = record.tokens_per_second or 0.0
    print(
        f"{name}: {text.sentences:,} sentences, {record.steps:,} steps, {record.tokens:,} tokens at {rate:,.0f} "
        f"a second{valid}; model in {output}",
        file=sys.stderr,
    )


def valid_perplexities(curve: list[dict[str, float]]) -> str:
    """Words for the perplexity of the validation text before and after; empty where there is no such text."""
    losses = [point["valid_loss"] for point in curve if "valid_loss" in point]
    return f"; valid perplexity {exp(losses[0]):.1f} -> {exp(losses[-1]):.1f}" if losses else ""


def training_identity(
    model: "nn.Module", vocabulary: Vocabulary, text: EncodedText, settings: TrainingSettings, seed: int
) -> dict[str, str]:
    """Hashes by what they are of: vocabulary, architecture, and what the order of batches comes from.

    A checkpoint with others is no state of this run, whatever else may have changed.
    """
    architecture = as_plain(model.architecture)
    return {
        "vocabulary": vocabulary.hash,
        "architecture": hash_of(architecture),
        "order": hash_of([_text_hash(text), seed, settings.batch_tokens, architecture]),
    }


def _text_hash(text: EncodedText) -> str:
    digest = hashlib.sha256(b"markers are targets" if text.markers_are_targets else b"")
    digest.update(text.offsets.tobytes())
    digest.update(text.tokens.tobytes())
    return digest.hexdigest()


def _weights_hash(model: "nn.Module") -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}\0".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
