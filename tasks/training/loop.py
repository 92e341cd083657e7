"""The training loop of the word Transformer and of the recogniser: Lightning runs it, saves it and resumes it.

Each model's own package has its loss, its batches and its validation. Checkpoints also hold the curve, the losses since
its last point, the state of early stopping and the generator of dropout. So an interrupted run gives the same bits.
"""

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor, nn

from tasks.errors import ModelError
from tasks.training.optimiser import OptimisationSettings, arithmetic_of, make_optimiser, rate_factor
from tasks.training.ranks import RankPlan
from tasks.training.stage import Checkpoints, Log, log_nothing
from tasks.training.steps import fit_once

if TYPE_CHECKING:
    from lightning.pytorch.utilities.types import OptimizerLRScheduler


class Step(NamedTuple):
    """The optimiser step that a batch belongs to."""

    targets: int
    """Targets of the whole step, over all processes."""
    epochs_done: float
    """Epochs completed after the step."""
    ends_epoch: bool
    """Whether the step is the last of its epoch."""
    is_last_part: bool = True
    """Whether the optimiser steps after the batch."""
    seconds: float = 0.0
    """Seconds of speech of this process's part."""


class Batches(ABC):
    """This process's batches of all epochs, with their steps; Lightning stores in checkpoints how many are done."""

    def __init__(self, epochs: float, plan: RankPlan, accumulate: int = 1) -> None:
        """``accumulate``: number of batches of a step; the last epoch may be a fraction."""
        self.epochs, self.plan, self.accumulate, self.done = epochs, plan, accumulate, 0
        self.steps = [len(self.order(epoch)) for epoch in range(math.ceil(epochs))]

    @abstractmethod
    def order(self, epoch: int) -> Sequence[Any]:
        """The rows of each step of an epoch."""

    @abstractmethod
    def remaining(self) -> Iterator[tuple[Any, Step]]:
        """The batches after those that are done."""

    def share(self, epoch: int) -> float:
        """The share of an epoch that is trained on."""
        return min(1.0, self.epochs - epoch)

    def places(self) -> Iterator[tuple[Any, int, int]]:
        """The rows, the epoch and the number within it of each step that is not done."""
        skipped = self.done // self.accumulate
        for epoch, steps in enumerate(self.steps):
            order = self.order(epoch) if skipped < steps else []
            yield from ((order[index], epoch, index) for index in range(skipped, steps))
            skipped = max(0, skipped - steps)

    def step(self, epoch: int, index: int, targets: int) -> Step:
        """A step of an epoch, by its number within it."""
        ends = index == self.steps[epoch] - 1
        done = epoch + (1.0 if ends else self.share(epoch) * (index + 1) / self.steps[epoch])
        return Step(targets, min(self.epochs, done), ends)

    def __len__(self) -> int:
        return sum(self.steps) * self.accumulate

    def __iter__(self) -> Iterator[tuple[Any, Step]]:
        for batch in self.remaining():
            self.done += 1
            yield batch
        self.done = 0

    def state_dict(self) -> dict[str, int]:
        """The number of batches that are done."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue after the batches that are done."""
        self.done = state["done"]


@dataclass
class TrainingRecord:
    """Results of a training run from its first step, over all devices and all interrupted parts."""

    arithmetic: str = "float32"
    """Number type of the wide products."""
    steps: int = 0
    tokens: int = 0
    """Number of targets in training, over all epochs and devices."""
    train_seconds: float = 0.0
    """Duration of the steps, without validation and start-up."""
    audio_seconds: float = 0.0
    """Seconds of speech in training, over all epochs and devices."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """Points of training: ``step``, ``train_loss`` (nats a target, mean since the last such point), ``learning_rate``
    and further losses. Points of validation: ``step``, ``epoch`` and ``valid_loss`` (nats a target)."""
    resumed_step: int | None = None
    """Step of the checkpoint that the last part of the run resumed from."""
    best_step: int | None = None
    """Step whose weights are the result, with early stopping."""
    stopped_early: bool = False
    """Whether training ended before all epochs were complete."""


class Training(LightningModule, ABC):
    """One model, its optimiser and its losses; ``training_step`` of a subclass passes its losses to ``note``."""

    saved_thing: ClassVar[str] = "model"
    """Name of the result in messages."""
    validates_first: ClassVar[bool] = True
    """Whether it validates before the first step."""
    loss_names: ClassVar[tuple[str, ...]] = ("train_loss",)
    """Names of the losses in the curve; the first one is minimised."""

    def __init__(self, model: nn.Module, settings: OptimisationSettings, total_steps: int, valid: object) -> None:
        """``valid`` is ``None`` without validation data."""
        super().__init__()
        self.model, self.settings, self.total_steps, self.valid = model, settings, total_steps, valid
        self.arithmetic = arithmetic_of(settings)
        self.sums: Tensor | None = None
        """Sums of the losses in nats since the last point of the curve."""

    @abstractmethod
    def measure(self) -> list[float]:
        """Sums over this process's part of the held-out data; the first is a loss in nats."""

    def valid_values(self, sums: list[float]) -> dict[str, float]:
        """The values of a validation from the sums over all processes."""
        return {"valid_loss": sums[0] / sums[1]}

    def note(self, *losses: Tensor, divisor: float) -> None:
        """Record the losses of a batch, in the order of ``loss_names``; each times ``divisor`` is a sum in nats."""
        found = torch.stack([loss.detach().double() for loss in losses]) * divisor
        self.sums = found if self.sums is None else self.sums.to(found.device) + found

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: object, **__: object) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> "OptimizerLRScheduler":
        """AdamW and its schedule of learning rates."""
        optimiser, schedule = make_optimiser(self.model, self.settings, self.total_steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class _Progress(Callback):
    """Records the curve, validates, stops early and saves checkpoints after a step."""

    def __init__(
        self, checkpoints: Checkpoints | None, seed: int, patience: int, on_log: Log, log_every_steps: int
    ) -> None:
        self.checkpoints, self.seed, self.patience = checkpoints, seed, patience
        self.on_log, self.log_every_steps = on_log, log_every_steps
        self.record = TrainingRecord()
        self.weights: dict[str, Tensor] | None = None
        """Weights of the smallest loss or, at the end, the gathered weights of a sharded model."""
        self._targets, self._best_loss, self._waited, self._clock = 0, math.inf, 0, 0.0
        self._saved = time.monotonic()
        self._generators: dict[str, Tensor] = {}

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Validate before the first step, or restore the generators that dropout draws from."""
        assert isinstance(module, Training)
        record = self.record
        record.arithmetic = str(module.arithmetic).removeprefix("torch.")
        if record.resumed_step is not None:
            self._resume(trainer, module, record.resumed_step)
        elif module.valid is not None and module.validates_first:
            self._validate(trainer, module, 0.0)
        self._clock = time.perf_counter()

    def _resume(self, trainer: Trainer, module: Training, step: int) -> None:
        trainer.should_stop = self.record.stopped_early
        if trainer.world_size > 1:
            torch.manual_seed(_rank_seed(self.seed, trainer.global_rank, step))
        else:
            torch.set_rng_state(self._generators["cpu"])
            if torch.cuda.is_available() and "cuda" in self._generators:
                torch.cuda.set_rng_state(self._generators["cuda"])
        if trainer.is_global_zero:
            print(f"goes on from the checkpoint after step {step:,} of {module.total_steps:,}", file=sys.stderr)
            for point in self.record.curve:
                self.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: object, batch: tuple[Any, Step], batch_idx: int
    ) -> None:
        """Count the step; log, validate and save where due."""
        assert isinstance(module, Training)
        step, record, settings = batch[1], self.record, module.settings
        if not step.is_last_part:
            return
        record.steps += 1
        record.tokens += step.targets
        self._targets += step.targets
        if step.seconds or trainer.world_size > 1:
            seconds = torch.tensor(step.seconds, dtype=torch.float64, device=module.device)
            record.audio_seconds += float(_summed(trainer, seconds))
        is_last = record.steps == module.total_steps
        is_logged = is_last or record.steps % self.log_every_steps == 0
        assert module.sums is not None, "training_step notes its losses"
        if is_logged or module.device.type != "cuda":  # reading a loss from a GPU waits for it
            remedy = (
                f"Give a smaller learning_rate than {settings.learning_rate!r} or a smaller gradient_clip than "
                f"{settings.gradient_clip!r}"
            )
            self._refuse(module, float(module.sums[0]), f"training loss is not a number at step {record.steps}", remedy)
        record.train_seconds += time.perf_counter() - self._clock
        if is_logged:
            targets = max(1, self._targets)
            first, *others = (total / targets for total in _summed(trainer, module.sums).tolist())
            rate = settings.learning_rate * rate_factor(record.steps - 1, module.total_steps, settings.warmup_share)
            further = dict(zip(module.loss_names[1:], others, strict=True))
            self._add_point({module.loss_names[0]: first, "learning_rate": rate, **further})
            self._targets, module.sums = 0, None
        every = settings.validate_every_steps
        if module.valid is not None and (is_last or (record.steps % every == 0 if every else step.ends_epoch)):
            self._validate(trainer, module, step.epochs_done)
        if self.checkpoints is not None and not trainer.should_stop:
            self._save(trainer, self.checkpoints)
        self._clock = time.perf_counter()

    def _save(self, trainer: Trainer, checkpoints: Checkpoints) -> None:
        """Save a checkpoint where one is due, and after SIGTERM; all processes decide it together."""
        every, ended = checkpoints.every_steps, trainer.received_sigterm
        is_late = 0 < checkpoints.every_seconds <= time.monotonic() - self._saved
        is_due = self.record.steps % every == 0 if every else is_late
        if not trainer.strategy.reduce_boolean_decision(is_due or ended, all=False):
            return
        trainer.save_checkpoint(checkpoints.file)
        self._saved = time.monotonic()
        if trainer.strategy.reduce_boolean_decision(ended, all=False):
            if trainer.is_global_zero:
                message = f"ended by SIGTERM after step {self.record.steps:,}; the same command goes on from there"
                print(message, file=sys.stderr)
            raise SIGTERMException

    @torch.no_grad()
    def _validate(self, trainer: Trainer, module: Training, epochs_done: float) -> None:
        """Measure the held-out data of all processes; with early stopping, store the weights of the smallest loss."""
        module.model.eval()
        with trainer.precision_plugin.forward_context():
            measured = torch.tensor(module.measure(), dtype=torch.float64, device=module.device)
        module.model.train()
        sums = _summed(trainer, measured).tolist()
        self._refuse(module, sums[0], f"validation loss is not a number after step {self.record.steps}")
        values = module.valid_values(sums)
        self._add_point(values, epoch=epochs_done)
        if self.patience and values["valid_loss"] < self._best_loss:
            self._best_loss, self._waited, self.record.best_step = values["valid_loss"], 0, self.record.steps
            self.weights = _whole_weights(module.model)
        elif self.patience:
            self._waited += 1
            if self._waited >= self.patience and self.record.steps < module.total_steps:
                self.record.stopped_early = trainer.should_stop = True

    def _refuse(self, module: Training, loss: float, reason: str, remedy: str = "") -> None:
        if not math.isfinite(loss):
            saved = f"no {module.saved_thing} was saved" + (f". {remedy}" if remedy else "")
            last = f"; the last checkpoint is in {str(self.checkpoints.file.parent)!r}" if self.checkpoints else ""
            raise ModelError(f"the {reason} of {module.total_steps}; {saved}{last}")

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Gather sharded weights while all processes still run."""
        assert isinstance(module, Training)
        if module.device_mesh is not None and self.weights is None:
            self.weights = _whole_weights(module.model)

    def _add_point(self, values: dict[str, float], **position: float) -> None:
        self.record.curve.append({"step": self.record.steps, **position, **values})
        self.on_log(self.record.steps, values)

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add the state that Lightning does not know; all processes call this together."""
        assert isinstance(module, Training)
        generators = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            generators["cuda"] = torch.cuda.get_rng_state()
        checkpoint["training"] = {
            "key": self.checkpoints.key if self.checkpoints else "",
            "record": asdict(self.record),
            "sums": None if module.sums is None else _summed(trainer, module.sums),
            "targets": self._targets,
            "best": (self._best_loss, self._waited, self.weights),
            "generators": generators,
        }

    def on_load_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Restore the state of ``on_save_checkpoint``."""
        assert isinstance(module, Training)
        state = checkpoint["training"]
        self.record = TrainingRecord(**state["record"])
        self.record.resumed_step = self.record.steps
        self._targets, self._generators = state["targets"], state["generators"]
        self._best_loss, self._waited, self.weights = state["best"]
        module.sums = state["sums"] if trainer.is_global_zero else None


def fit(
    module: Training,
    batches: Batches,
    *,
    seed: int,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    checkpoints: Checkpoints | None = None,
    patience: int = 0,
) -> tuple[TrainingRecord, dict[str, Tensor] | None]:
    """Train to the end; the model remains on its device. Also returns the weights of the best step or of a sharded
    model, or ``None`` where the model has them.

    Dropout depends on ``seed`` alone, and the caller's generators do not change. All processes of the batches' plan
    call this together. Raises ``ModelError`` where the loss is no longer finite, and ``SystemExit`` with 143 after
    SIGTERM.
    """
    plan = batches.plan
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(_rank_seed(seed, plan.rank))
        begin_with = checkpoints.begin_with if checkpoints else None
        if checkpoints and begin_with:
            _check_checkpoint(begin_with, checkpoints.key)
        progress = _Progress(checkpoints, seed, patience, on_log if plan.is_first else log_nothing, log_every_steps)
        # Lightning sees all epochs as one: the last may be a fraction, and the steps mark the end of each.
        fit_once(
            module,
            batches,
            callbacks=[progress],
            has_bar=plan.is_first and sys.stdout.isatty(),
            begin_with=begin_with,
            precision="bf16-mixed" if module.arithmetic == torch.bfloat16 else "32-true",
            accumulate_grad_batches=batches.accumulate,
            **plan.devices_of_trainer(),
        )
    return progress.record, progress.weights


def _check_checkpoint(path: Path, key: str) -> None:
    """Raise ``ModelError`` where a checkpoint is missing, damaged, or of another vocabulary, model or text."""
    try:
        found = torch.load(path, map_location="meta", weights_only=True, mmap=True)["training"]["key"]
    except FileNotFoundError:
        raise ModelError(f"checkpoint {str(path)!r} does not exist; give a file, or no resources.resume_from") from None
    except Exception:
        raise ModelError(f"checkpoint {str(path)!r} is damaged; train with --set resources.resume=false") from None
    if found != key:
        raise ModelError(
            f"checkpoint {str(path)!r} is of another vocabulary, architecture, text or order of batches; give the one "
            "of this training, or train with --set resources.resume=false and no resources.resume_from"
        )


def _summed(trainer: Trainer, values: Tensor) -> Tensor:
    """Sum each value over processes; the result is on the processor."""
    found: Tensor = trainer.strategy.reduce(values.clone(), reduce_op="sum").cpu()
    return found


def _whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all weights, on the processor; all processes call this together."""
    from torch.distributed.tensor import DTensor

    whole = ((name, w.full_tensor() if isinstance(w, DTensor) else w) for name, w in model.named_parameters())
    return {name: weight.detach().cpu().clone() for name, weight in whole}


def _rank_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a process's dropout: the first one starts with the seed itself, all others with derived seeds."""
    if rank == step == 0:
        return seed
    return int(np.random.SeedSequence([seed, rank, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))
