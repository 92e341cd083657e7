"""A training as Lightning sees it: what happens after each step, how it is guarded, and how it goes on.

What is trained, and on what, is a subclass's: the loss, the batches, the validation.
"""

import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from tasks.errors import ModelError
from tasks.training.checkpoints import Checkpoint, CheckpointStore
from tasks.training.optimiser import OptimisationSettings, arithmetic_of, make_optimiser, rate_factor, set_schedule
from tasks.training.ranks.group import RankGroup
from tasks.training.record import StepLosses, TrainingRecord
from tasks.training.stage import Log
from tasks.training.tensors import all_finite, capture, restore, restore_generators

if TYPE_CHECKING:
    from lightning.pytorch.utilities.types import OptimizerLRScheduler


class StepBatch(Protocol):
    """Where a batch stands in the training."""

    @property
    def epoch(self) -> int:
        """From 0."""

    @property
    def index(self) -> int:
        """Number of the step in its epoch, from 0."""

    @property
    def epochs_done(self) -> float:
        """Epochs that are through after the step."""

    @property
    def ends_epoch(self) -> bool:
        """Whether the step is the last of its epoch."""


class Batches(Protocol):
    """One rank's batches of all epochs, from ``start`` on."""

    start: tuple[int, int]
    """Epoch and number of the step in it to begin with."""
    seed: int
    """What their order comes from."""

    def __iter__(self) -> Iterator[Any]:
        """The batches."""


@dataclass(frozen=True)
class TrainingRun:
    """One run of a training: who computes it, how long it is, and where what comes of it goes."""

    group: RankGroup
    total_steps: int
    """Optimiser steps of all epochs together."""
    store: CheckpointStore | None
    """Where checkpoints are; ``None``: there are none."""
    on_log: Log
    log_every_steps: int
    on_progress: Callable[[int], Any]
    """Takes the number of steps done since the last call."""


class ResumableTraining(LightningModule, ABC):
    """One model, its optimiser, and what is logged and kept of its training.

    A subclass has ``training_step``, which adds to ``losses``; it calls ``end_step`` when a step is done.
    """

    saved_thing = "model"
    """What a message says that a training which failed has not saved."""
    loss_remedy = ""
    """What a user can do besides about a loss that is not a number."""

    def __init__(
        self,
        model: nn.Module,
        settings: OptimisationSettings,
        batches: Batches,
        valid: object,
        run: TrainingRun,
        record: TrainingRecord,
        losses: Sequence[str] = ("train_loss",),
    ):
        """``valid`` is ``None`` where nothing is there to validate on; ``losses`` are named as in the curve."""
        super().__init__()
        self.model = model
        self.settings = settings
        self.batches, self.valid = batches, valid
        self.run, self.group, self.store = run, run.group, run.store
        self.arithmetic = arithmetic_of(settings)
        self.record = record
        record.arithmetic = str(self.arithmetic).removeprefix("torch.")
        self.losses = StepLosses(losses)
        self._resumed: Checkpoint | None = None
        self._terminated = False
        self._clock = 0.0

    # What a subclass says ---------------------------------------------------------------------------------------

    @abstractmethod
    def validate(self, epochs_done: float) -> None:
        """Measure the model on ``valid`` and add a point to the curve; all ranks call this together."""

    def begin(self) -> None:
        """Do what comes before the first step of a run that no checkpoint goes on from."""

    def further_state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides, as JSON has it."""
        return {}

    def further_tensors(self) -> dict[str, Tensor]:
        """Tensors that a checkpoint keeps besides."""
        return {}

    def take_up(self, checkpoint: Checkpoint) -> None:
        """Go on with what the others have kept."""

    # After each step --------------------------------------------------------------------------------------------

    def end_step(self, batch: StepBatch, targets: int) -> None:
        """Count a step of so many targets; where they are due log a point, validate, and write a checkpoint."""
        record = self.record
        record.steps += 1
        record.tokens += targets
        self.losses.targets += targets
        is_last = record.steps == self.run.total_steps
        is_logged = is_last or record.steps % self.run.log_every_steps == 0
        if is_logged or self.device.type != "cuda":
            self.losses.read()
        record.train_seconds += time.perf_counter() - self._clock
        self._stop_where_faulty()
        if is_logged:
            self._log_point()
        every = self.settings.validate_every_steps
        if self.valid is not None and (is_last or (record.steps % every == 0 if every else batch.ends_epoch)):
            self.validate(batch.epochs_done)
        self.run.on_progress(1)
        self._keep_or_leave(batch, is_last)
        self._clock = time.perf_counter()

    def _stop_where_faulty(self) -> None:
        step = int(self.group.largest([float(self.losses.faulty_step)])[0])
        if step:
            raise ModelError(
                f"the training loss is not a number at step {step} of {self.run.total_steps}; {self.last_good}. Give a "
                f"smaller learning_rate than {self.settings.learning_rate!r} or a smaller gradient_clip than "
                f"{self.settings.gradient_clip!r}{self.loss_remedy}"
            )

    @property
    def last_good(self) -> str:
        """Words for a message: what is there of the training."""
        return f"no {self.saved_thing} was saved" if self.store is None else self.store.last_good

    def _log_point(self) -> None:
        sums = self.group.sums(list(self.losses.totals.values()))
        targets = max(1, self.losses.targets)
        first, *others = ((name, total / targets) for name, total in zip(self.losses.totals, sums, strict=True))
        rate = self.settings.learning_rate * rate_factor(
            self.record.steps - 1, self.run.total_steps, self.settings.warmup_share
        )
        self.add_point(dict([first, ("learning_rate", rate), *others]))
        self.losses.begin_again()

    def add_point(self, values: dict[str, float], **position: float) -> None:
        """Put a point into the curve and log its values."""
        self.record.curve.append({"step": self.record.steps, **position, **values})
        self.run.on_log(self.record.steps, values)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def _keep_or_leave(self, batch: StepBatch, is_last: bool) -> None:
        """Write a checkpoint where one is due or where this process has been asked to end, and then leave."""
        is_over = is_last or self.record.stopped_early
        due = self.store is not None and self.group.plan.is_first and self.store.is_due(self.record.steps)
        wanted, terminated = self.group.largest([float(due and not is_over), float(self._terminated)])
        if self.store is not None and (wanted or terminated):
            self._save(self.store, (batch.epoch + 1, 0) if batch.ends_epoch else (batch.epoch, batch.index + 1))
        if terminated:
            self._say_where_it_ended()
            raise SystemExit(128 + signal.SIGTERM)

    def _save(self, store: CheckpointStore, next_batch: tuple[int, int]) -> None:
        self.losses.read()
        self._stop_where_faulty()
        tensors = capture(self.model, self._optimiser, self.group)
        interval = self.group.sums(list(self.losses.totals.values()))
        if not all_finite(tensors):
            raise ModelError(
                f"weights are not finite after step {self.record.steps} of {self.run.total_steps}; {self.last_good}. "
                f"Give a smaller learning_rate than {self.settings.learning_rate!r}"
            )
        if not self.group.plan.is_first:
            return
        state = {
            "identity": store.identity,
            **self.record.as_state(),
            "total_steps": self.run.total_steps,
            "next_batch": next_batch,
            "interval": [*interval, self.losses.targets],
            **self.further_state(),
            "ranks": self.group.plan.world_size,
        }
        store.save(Checkpoint(state, tensors | self.further_tensors()))

    def _say_where_it_ended(self) -> None:
        if self.group.plan.is_first and self.store is not None:
            print(
                f"ended by SIGTERM after step {self.record.steps:,} of {self.run.total_steps:,}; the same command goes "
                "on from there",
                file=sys.stderr,
            )

    def on_fit_start(self) -> None:
        """Take up where a checkpoint was written; Lightning has brought the ranks together by now."""
        self.group.connect()
        if self.store is None:
            return
        first = self.group.plan.is_first
        found = self.store.latest() if first else None
        state = self.group.from_first(found.state if found else None)
        if state is None:
            return
        tensors = self.group.tensors_from_first(found.tensors if found else None)
        self._resumed = Checkpoint(state, tensors)
        restore(self.model, self._optimiser, tensors)
        schedule: Any = self.trainer.lr_scheduler_configs[0].scheduler
        set_schedule(schedule, state["step"])
        self.record.go_on_from(state)
        *totals, targets = state["interval"]
        # What all ranks had gathered by then is now the first one's.
        self.losses.begin_again(totals if first else (), targets)
        self.take_up(self._resumed)
        self.batches.start = tuple(state["next_batch"])
        if first:
            print(
                f"goes on from the checkpoint after step {self._resumed.step:,} of {self.run.total_steps:,}",
                file=sys.stderr,
            )
            for point in self.record.curve:
                self.run.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})

    def on_train_start(self) -> None:
        """Begin, or set dropout's generators to where they were; and be ready for SIGTERM."""
        # Lightning's own handler, which was registered just now, would ask other ranks from within the signal.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._terminate)
        if self._resumed is not None:
            plan = self.group.plan
            restore_generators(self._resumed.tensors, plan.rank, plan.world_size, self.batches.seed, self._resumed.step)
            self.run.on_progress(self._resumed.step)
            self._resumed = None
            if self.record.stopped_early or self.record.steps >= self.run.total_steps:
                self.trainer.should_stop = True
        else:
            self.begin()
        self._clock = time.perf_counter()

    def _terminate(self, *_: object) -> None:
        self._terminated = True

    @property
    def _optimiser(self) -> torch.optim.Optimizer:
        return self.trainer.optimizers[0]

    # What Lightning asks for ------------------------------------------------------------------------------------

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: object, **__: object) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> "OptimizerLRScheduler":
        """AdamW and its schedule of learning rates."""
        optimiser, schedule = make_optimiser(self.model, self.settings, self.run.total_steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
