"""Training a language model with Lightning: pretraining and adaptation are the same loop on other text."""

import logging
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.batching import Batch, batches_by_length, epoch_order, make_batch
from tasks.language_model.batching import training_batches as batches_of_epoch
from tasks.language_model.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.transformer import TransformerLanguageModel
from tasks.language_model.windows import Windows, divide
from tasks.torch_setup import has_bfloat16

Log = Callable[[int, dict[str, float]], None]
"""Takes an optimiser step and the values measured there."""

_ADAM_BETAS = (0.9, 0.98)
_VALID_BATCH_TOKENS = 4096


@dataclass
class TrainingRecord:
    """What a training run did."""

    arithmetic: str = "float32"
    """Number type of the wide products."""
    steps: int = 0
    """Optimiser steps."""
    tokens: int = 0
    """Targets that were trained on, over all epochs."""
    train_seconds: float = 0.0
    """Time of the steps, without validation and start-up."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """Points of training: ``step``, ``train_loss`` (nats a target, mean since the last such point) and
    ``learning_rate``. Points of validation, before training and after each epoch: ``step``, ``epoch`` and
    ``valid_loss`` (nats a target)."""

    @property
    def tokens_per_second(self) -> float | None:
        """Targets a second; ``None`` before the first step."""
        return self.tokens / self.train_seconds if self.train_seconds else None


class EpochBatches:
    """The training batches of the epoch that the trainer is in; an iterable anew for each epoch."""

    def __init__(self, text: EncodedText, windows: Windows, settings: TrainingSettings, seed: int):
        self.text, self.windows, self.settings, self.seed = text, windows, settings, seed
        self.epochs = math.ceil(settings.epochs)
        self.current_epoch: Callable[[], int] = lambda: 0

    def share(self, epoch: int) -> float:
        """How much of an epoch is trained on: all of it, or the rest of a fraction in the last."""
        return min(1.0, self.settings.epochs - epoch)

    def total_steps(self) -> int:
        """Batches of all epochs together."""
        return sum(
            len(epoch_order(self.windows, self.settings.batch_tokens, self.seed, epoch, self.share(epoch)))
            for epoch in range(self.epochs)
        )

    def __iter__(self) -> Iterator[Batch]:
        epoch = self.current_epoch()
        yield from batches_of_epoch(
            self.text, self.windows, self.settings.batch_tokens, self.seed, epoch, self.share(epoch)
        )


class ValidBatches:
    """The same batches at every validation."""

    def __init__(self, text: EncodedText, windows: Windows):
        self.text, self.windows, self.is_target = text, windows, text.is_target()

    def __iter__(self) -> Iterator[Batch]:
        for chosen in batches_by_length(self.windows, _VALID_BATCH_TOKENS):
            yield make_batch(self.text, self.is_target, self.windows, chosen)


class LanguageModelTraining(LightningModule):
    """One model, its optimiser and what is logged of it."""

    def __init__(
        self,
        model: TransformerLanguageModel,
        settings: TrainingSettings,
        total_steps: int,
        on_log: Log,
        log_every_steps: int,
        on_step: Callable[[], Any],
    ):
        super().__init__()
        self.model = model
        self.settings = settings
        self.total_steps = total_steps
        self.on_log = on_log
        self.log_every_steps = log_every_steps
        self.on_step = on_step
        self.arithmetic = arithmetic_of(settings)
        self.record = TrainingRecord(arithmetic=str(self.arithmetic).removeprefix("torch."))
        self._interval = [0.0, 0]  # sum of losses in nats, targets, since the last point of the curve
        self._valid = [0.0, 0]  # sum of losses in nats, targets
        self._clock = 0.0

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        """Mean loss of a batch, in nats a target."""
        loss = self._loss_sum(batch) / len(batch.targets)
        self._interval[0] += loss.item() * len(batch.targets)
        self._interval[1] += len(batch.targets)
        return loss

    def _loss_sum(self, batch: Batch) -> Tensor:
        return chunked_cross_entropy(
            self._selected(batch), self.model.embedding.weight, batch.targets, arithmetic=self.arithmetic
        )

    def _selected(self, batch: Batch) -> Tensor:
        """Hidden states (N, D) of the positions that count: padding and ignored targets cost no projection."""
        hidden = self.model(batch.tokens).flatten(0, 1)  # (B x T, D)
        if len(batch.positions) == len(hidden):
            return hidden
        return hidden.index_select(0, batch.positions)

    def on_train_epoch_start(self) -> None:
        """Restart the clock: validation is not part of the training time."""
        self._clock = time.perf_counter()

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_index: int) -> None:
        """Count the step and, where it is due, log a point of the curve."""
        record = self.record
        record.steps += 1
        record.tokens += len(batch.targets)
        now = time.perf_counter()
        record.train_seconds += now - self._clock
        if record.steps % self.log_every_steps == 0 or record.steps == self.total_steps:
            self._log_point()
        self.on_step()
        self._clock = time.perf_counter()

    def _log_point(self) -> None:
        loss = self._interval[0] / self._interval[1]
        if not math.isfinite(loss):
            raise ModelError(
                f"the training loss is {loss!r} at step {self.record.steps} of {self.total_steps}; nothing was saved. "
                f"Give a smaller learning_rate than {self.settings.learning_rate!r} or a smaller gradient_clip"
            )
        rate = self.settings.learning_rate * rate_factor(
            self.record.steps - 1, self.total_steps, self.settings.warmup_share
        )
        self.record.curve.append({"step": self.record.steps, "train_loss": loss, "learning_rate": rate})
        self.on_log(self.record.steps, {"train_loss": loss, "learning_rate": rate})
        self._interval = [0.0, 0]

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        """Adds a batch's log-probabilities and counts; they are divided once, at the end."""
        scores = chunked_log_probabilities(
            self._selected(batch), self.model.embedding.weight, batch.targets, self.arithmetic
        )
        self._valid[0] -= scores.double().sum().item()
        self._valid[1] += len(scores)

    def on_validation_epoch_end(self) -> None:
        """Log a point of the validation curve; ``ModelError`` where it is not a number."""
        loss = self._valid[0] / self._valid[1]
        self._valid = [0.0, 0]
        if not math.isfinite(loss):
            raise ModelError(f"the validation loss is {loss!r} after step {self.record.steps}; nothing was saved")
        epoch = min(self.settings.epochs, float(self.current_epoch + 1)) if self.record.steps else 0.0
        self.record.curve.append({"step": self.record.steps, "epoch": epoch, "valid_loss": loss})
        self.on_log(self.record.steps, {"valid_loss": loss})

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> Any:
        """AdamW with a linear warm-up and a cosine to zero; biases and norms do not decay."""
        matrices = [parameter for parameter in self.model.parameters() if parameter.dim() > 1]
        vectors = [parameter for parameter in self.model.parameters() if parameter.dim() <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(groups, lr=self.settings.learning_rate, betas=_ADAM_BETAS, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: rate_factor(step, self.total_steps, self.settings.warmup_share)
        )
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def rate_factor(step: int, total_steps: int, warmup_share: float) -> float:
    """Share of the peak learning rate at a step (from 0): a line up to 1, then half a cosine down to 0."""
    warmup = round(warmup_share * total_steps)
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total_steps - warmup)))


def arithmetic_of(settings: TrainingSettings) -> torch.dtype:
    """Number type of the wide products: as set, or bfloat16 where the processor has it."""
    bfloat16 = settings.precision == "bfloat16" or (settings.precision == "auto" and has_bfloat16())
    return torch.bfloat16 if bfloat16 else torch.float32


def train(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: TrainingSettings,
    seed: int,
    *,
    valid: EncodedText | None = None,
    on_log: Log = lambda step, values: None,
    log_every_steps: int = 10,
    title: str = "training",
) -> TrainingRecord:
    """Train ``model`` in place and say what was done.

    The order of the batches and dropout are functions of ``seed``. ``on_log`` is called every ``log_every_steps``
    steps and after each validation. Raises ``ModelError`` where the loss is no longer a number.
    """
    from tqdm import tqdm

    maximum = model.architecture.maximum_tokens
    batches = EpochBatches(text, divide(text, maximum), settings, seed)
    total = batches.total_steps()
    model.set_dropout(settings.dropout)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with (
        tqdm(total=total, desc=title, unit="step", disable=None, leave=False) as bar,
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", module="lightning")
        torch.manual_seed(seed)
        module = LanguageModelTraining(model, settings, total, on_log, log_every_steps, bar.update)
        batches.current_epoch = lambda: module.current_epoch
        trainer = Trainer(
            accelerator="auto",
            devices=1,
            precision="bf16-mixed" if module.arithmetic == torch.bfloat16 else "32-true",
            max_epochs=batches.epochs,
            num_sanity_val_steps=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        valid_batches = None if valid is None else ValidBatches(valid, divide(valid, maximum))
        with _signals_as_exit():
            if valid_batches is not None:
                trainer.validate(module, dataloaders=valid_batches, verbose=False)
            trainer.fit(module, train_dataloaders=batches, val_dataloaders=valid_batches)
    model.cpu().eval()
    return module.record


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Leave as any process that a signal ends: Lightning exits with 0 after SIGTERM and with 1 after an interrupt."""
    try:
        yield
    except SIGTERMException:
        raise SystemExit(128 + signal.SIGTERM) from None
    except SystemExit as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
