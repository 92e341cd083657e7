"""Training of the word Transformer, for pretraining and adaptation (paper 4.2).

The batches of an epoch depend on text, settings, seed and epoch alone. An optimiser step has the same targets for any
number of processes and of accumulated parts.
"""

import copy
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from math import exp
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.errors import ParameterError, ResourceError
from tasks.language_model.encoded_text import EncodedText, encode_text, warn_of_markers
from tasks.language_model.language_factors import check_weight, exponents_of, factors_of
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import ArchitectureSettings, LanguageFactorSettings, MarkerUse, TrainingSettings
from tasks.language_model.transformer.batching import Batch, batches_by_length, divide, epoch_order, make_batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.transformer.packing import make_packed_batch, packed_batches
from tasks.language_model.transformer.scoring import class_probabilities
from tasks.language_model.vocabulary import PADDING_ID, Vocabulary
from tasks.records.stage_report import Report
from tasks.settings.checks import as_plain
from tasks.settings.resources import ResourceSettings
from tasks.torch_setup import set_dropout, set_up_torch
from tasks.training.loop import Batches, Step, Training, TrainingRecord, fit
from tasks.training.ranks import ALONE, RankPlan, plan_ranks
from tasks.training.stage import Checkpoints, Curve, Log, TrainedFolder, checkpoints_of, hash_of, log_nothing

_VALID_BATCH_TOKENS = 4096

Rows = np.ndarray | Sequence[np.ndarray]
"""Rows of a batch: one window each, or several windows each."""


class TextBatches(Batches):
    """This process's batches of a text."""

    def __init__(
        self,
        text: EncodedText,
        architecture: ArchitectureSettings,
        settings: TrainingSettings,
        seed: int,
        plan: RankPlan = ALONE,
    ) -> None:
        self.text, self.settings, self.seed = text, settings, seed
        self.windows, self.is_target = divide(text, architecture.maximum_tokens), text.is_target()
        self.row_length = architecture.maximum_tokens if architecture.context == "packed" else 0
        counted, first = np.concatenate([[0], np.cumsum(self.is_target)]), self.windows.first + 1
        self._targets = counted[first + self.windows.length] - counted[first]
        super().__init__(settings.epochs, plan, settings.accumulate)

    def order(self, epoch: int, share: float) -> Sequence[Rows]:
        """The rows of each step of a share of an epoch."""
        if not self.row_length:
            return epoch_order(self.windows, self.settings.batch_tokens, self.seed, epoch, share)
        batches = packed_batches(self.windows, self.row_length, self.settings.batch_tokens, self.seed, epoch)
        return batches[: max(1, round(share * len(batches)))]

    def targets(self, step: Step) -> int:
        """Number of targets of a step, over all processes."""
        rows = np.concatenate(step.rows) if self.row_length else step.rows
        return int(self._targets[rows].sum())

    def made(self, numbers: range) -> Iterable[Batch]:
        """The batches of these numbers; one without rows is of padding without a target."""
        return map(self._batch, numbers)

    def _batch(self, number: int) -> Batch:
        step, part = divmod(number, self.accumulate)
        # Neighbours have similar length, so taking every n-th row balances the tokens of the parts.
        parts, ranks = self.accumulate, self.plan.world_size
        rows = self.steps[step].rows[part * ranks + self.plan.rank :: parts * ranks]
        if not len(rows):
            nothing, padding = torch.empty(0, dtype=torch.int64), torch.full((1, 1), PADDING_ID)
            zeros = torch.zeros_like(padding) if self.row_length else None
            return Batch(padding, nothing, nothing, nothing, zeros, zeros)
        make = make_packed_batch if self.row_length else make_batch
        return make(self.text, self.is_target, self.windows, rows)


class LanguageModelTraining(Training):
    """Loss and validation of a word Transformer, in nats a target."""

    model: TransformerLanguageModel
    valid: EncodedText | None

    def training_step(self, part: tuple[Batch, float], batch_index: int) -> Tensor:
        """The loss of a batch in nats, by its divisor."""
        batch, divisor = part
        hidden, weight = selected_states(self.model, batch), self.model.embedding.weight
        loss = chunked_cross_entropy(hidden, weight, batch.targets, arithmetic=self.arithmetic) / divisor
        self.note(divisor, loss)
        return loss

    def measure(self) -> list[float]:
        """The summed loss in nats, and the number of targets."""
        assert self.valid is not None
        return summed_loss(self.model, self.valid, self.arithmetic, self.device, self.batches.plan)

    def configure_model(self) -> None:
        """Shard the weights among the processes (FSDP2) if the strategy requires it: each block, and the rest."""
        if self.device_mesh is None:
            return
        from torch.distributed.fsdp import fully_shard

        mesh = self.device_mesh["data_parallel"]
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        # The projection onto the vocabulary uses the embedding again after the forward pass.
        fully_shard(self.model, mesh=mesh, reshard_after_forward=False)


def selected_states(model: TransformerLanguageModel, batch: Batch) -> Tensor:
    """Hidden states (N, D) of the target positions; padding and ignored targets cost no projection."""
    hidden: Tensor = model(batch.tokens, batch.places, batch.segments).flatten(0, 1)  # (B x T, D)
    return hidden if len(batch.positions) == len(hidden) else hidden.index_select(0, batch.positions)


def summed_loss(
    model: TransformerLanguageModel,
    text: EncodedText,
    arithmetic: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    plan: RankPlan = ALONE,
) -> list[float]:
    """The summed loss of this process's part of a text in nats, and its number of targets."""
    windows, is_target, loss, targets = divide(text, model.architecture.maximum_tokens), text.is_target(), 0.0, 0
    for rows in batches_by_length(windows, _VALID_BATCH_TOKENS):
        if len(own := rows[plan.rank :: plan.world_size]):
            batch = make_batch(text, is_target, windows, own).to(device)
            states, weight = selected_states(model, batch), model.embedding.weight
            loss -= chunked_log_probabilities(states, weight, batch.targets, arithmetic).double().sum().item()
            targets += len(batch.targets)
    return [loss, targets]


def train(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: TrainingSettings,
    seed: int,
    *,
    valid: EncodedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    plan: RankPlan = ALONE,
    checkpoints: Checkpoints | None = None,
    compiled: bool = False,
) -> TrainingRecord:
    """Train ``model`` in place and return a record of the run.

    The order of the batches and dropout depend on ``seed`` alone. ``on_log`` is called every ``log_every_steps`` steps
    and after each validation. All processes of ``plan`` call this together, and all have the trained model in the end.
    Raises the errors of ``fit``, and ``ParameterError`` for early stopping without a validation text.
    """
    if settings.patience and valid is None:
        raise ParameterError(
            f"patience is {settings.patience!r} and there is no validation text to measure; give --valid, or patience 0"
        )
    set_dropout(model, settings.dropout)
    # FSDP and the compiler change the modules, so they get a copy.
    trained = copy.deepcopy(model) if compiled or plan.strategy == "fsdp" else model
    # A model read from a folder is in evaluation mode, and Lightning would leave it so: without dropout.
    trained.train()
    for block in trained.blocks if compiled else ():
        block.compile(dynamic=True)  # one compiled block serves all, for rows of any number and length
    batches = TextBatches(text, model.architecture, settings, seed, plan)
    module = LanguageModelTraining(trained, settings, seed, batches, valid, on_log, log_every_steps)
    record = fit(module, checkpoints)
    model.load_state_dict(model.state_dict() | (module.weights or trained.state_dict()))
    model.cpu().eval()
    return record


def check_compiler() -> None:
    """Raise ``ResourceError`` where this machine has no compiler."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++", "c++"]
    lacks = not any(map(shutil.which, names)), torch.cuda.is_available() and not find_spec("triton")
    if any(lacks):
        wanted = "triton" if lacks[1] else f"a C++ compiler ({', '.join(names)}, or that of the variable CXX)"
        raise ResourceError(f"compile is on and PyTorch finds no {wanted}; install it, or switch compile off")


def train_transformer(
    name: str,
    settings: TrainingSettings,
    start: Callable[[], tuple[TransformerLanguageModel, Vocabulary]],
    texts: tuple[str, str | None],
    files: TrainedFolder,
    resources: ResourceSettings,
    curve: Curve,
    *,
    markers: MarkerUse = "none",
    encode: Callable[[str, Vocabulary], EncodedText] | None = None,
    languages: LanguageFactorSettings | None = None,
) -> Report:
    """Read the texts, train, write the model folder, and print one line of results for the command ``name``.

    ``start`` makes or reads the model to start from. ``texts``: the text to train on, and a plain one to measure
    progress on. ``encode`` converts a text file to tokens, where these are not its words. With ``languages``, scoring
    predicts the language of the next word first. Of several processes that train together, only the first writes.
    """
    check_replaceable(files.output)
    check_weight(languages, texts[1])
    plan = plan_ranks(resources)
    set_up_torch(resources.threads)
    if resources.compile:
        check_compiler()
    report = Report(seed=settings.seed)
    model, vocabulary = start()
    model.languages = None  # a base's languages belong to another text
    text = (encode or partial(encode_text, markers=markers))(texts[0], vocabulary)
    valid = (encode or encode_text)(texts[1], vocabulary) if texts[1] else None
    if text.sentences == 1:
        report.warn(f"{texts[0]!r} has one sentence; a model trained on it is of no use")
    architecture, every = as_plain(model.architecture), curve.every_steps
    order = [text.markers_are_targets, settings.seed, settings.batch_tokens, architecture, vocabulary.hash]
    key = hash_of(text.offsets, text.tokens, order)
    weights = (part for weight in sorted(model.state_dict().items()) for part in (weight[0], weight[1].numpy()))
    held_out = () if valid is None else (valid.offsets, valid.tokens)
    decisive = *weights, *held_out, as_plain(settings), every
    with checkpoints_of(files.output, resources, plan, key, *decisive) as checkpoints:
        with curve.open() as on_log:
            logged: dict[str, Any] = {"valid": valid, "on_log": on_log, "log_every_steps": every}
            own: dict[str, Any] = {"plan": plan, "checkpoints": checkpoints, "compiled": resources.compile}
            record = train(model, text, settings, settings.seed, **logged, **own)
        model.languages = factors_of(languages, text, valid, vocabulary, partial(class_probabilities, model))
        if plan.is_first:
            save_model(files.output, model, vocabulary)
    rate = record.tokens / record.train_seconds if record.train_seconds else 0.0
    report.measure(
        epochs=settings.epochs,
        tokens_per_second=round(rate, 1) or None,
        parameters_count=model.parameter_count(),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        **text.counts(),
        marker_use=markers,
        threads=resources.threads,
        compiled=resources.compile,
        **exponents_of(model.languages),
        **record.measured(plan),
        tokens=record.tokens,
        best_step=record.best_step,
        stopped_early=record.stopped_early,
    )
    if plan.is_first:
        early = f"; stopped early, with the weights after step {record.best_step:,}" if record.stopped_early else ""
        print(
            f"{name}: {text.sentences:,} sentences, {record.steps:,} steps, {record.tokens:,} tokens at {rate:,.0f} "
            f"a second{valid_perplexities(record.curve)}{early}; model in {files.output}",
            file=sys.stderr,
        )
        warn_of_markers(report, text.marker_like)
    return report


def valid_perplexities(curve: list[dict[str, float]]) -> str:
    """Words for the perplexity of the validation text before and after; empty without such a text."""
    losses = [point["valid_loss"] for point in curve if "valid_loss" in point]
    return f"; valid perplexity {exp(losses[0]):.1f} -> {exp(losses[-1]):.1f}" if losses else ""
