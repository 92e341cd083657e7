"""The training of one model as Lightning sees it: the loss, what happens after each step, and how it goes on."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.live_curve import Log
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatch, TrainingBatches, ValidBatches
from tasks.language_model.training.checkpoints.checkpoint import Checkpoint
from tasks.language_model.training.checkpoints.state import (
    all_finite,
    best_as_tensors,
    best_in,
    capture,
    restore,
    restore_generators,
    whole_weights,
)
from tasks.language_model.training.checkpoints.store import CheckpointStore
from tasks.language_model.training.losses import StepLosses
from tasks.language_model.training.optimiser import arithmetic_of, make_optimiser, rate_factor, set_schedule
from tasks.language_model.training.ranks.group import RankGroup
from tasks.language_model.training.ranks.strategy import divide_model
from tasks.language_model.training.record import TrainingRecord
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel


class LanguageModelTraining(LightningModule):
    """One model, its optimiser, and what is logged and kept of its training."""

    def __init__(
        self,
        model: TransformerLanguageModel,
        settings: TrainingSettings,
        batches: TrainingBatches,
        valid: ValidBatches | None,
        group: RankGroup,
        store: CheckpointStore | None,
        on_log: Log,
        log_every_steps: int,
        on_progress: Callable[[int], Any],
    ):
        super().__init__()
        self.model = model
        self.settings = settings
        self.batches, self.valid = batches, valid
        self.group, self.store = group, store
        self.on_log, self.log_every_steps, self.on_progress = on_log, log_every_steps, on_progress
        self.total_steps = batches.total_steps()
        self.arithmetic = arithmetic_of(settings)
        self.record = TrainingRecord(arithmetic=str(self.arithmetic).removeprefix("torch."))
        self.best_weights: dict[str, Tensor] | None = None
        self.final_weights: dict[str, Tensor] | None = None
        """The whole weights at the end, where they were divided among ranks."""
        self._best_loss, self._waited = math.inf, 0
        self._losses = StepLosses()
        self._resumed: Checkpoint | None = None
        self._terminated = False
        self._clock = 0.0

    # The loss ---------------------------------------------------------------------------------------------------

    def training_step(self, part: TrainingBatch, batch_index: int) -> Tensor:
        """Loss of a part, so scaled that the mean over ranks and parts is the step's loss in nats a target."""
        parts = self.group.plan.world_size * self.settings.accumulate
        divisor = max(1, part.step_targets) / parts
        loss = self._loss_sum(part.batch) / divisor
        self._losses.add(self.record.steps + 1, loss, divisor)
        return loss

    def _loss_sum(self, batch: Batch) -> Tensor:
        return chunked_cross_entropy(
            self._selected(batch), self.model.embedding.weight, batch.targets, arithmetic=self.arithmetic
        )

    def _selected(self, batch: Batch) -> Tensor:
        """Hidden states (N, D) of the positions that count: padding and ignored targets cost no projection."""
        hidden = self.model(batch.tokens, batch.places, batch.segments).flatten(0, 1)  # (B x T, D)
        if len(batch.positions) == len(hidden):
            return hidden
        return hidden.index_select(0, batch.positions)

    # After each step --------------------------------------------------------------------------------------------

    def on_train_batch_end(self, outputs: Any, part: TrainingBatch, batch_index: int) -> None:
        """Count the step; where they are due log a point, validate, stop early, and write a checkpoint."""
        if not part.is_last_part:
            return
        record = self.record
        record.steps += 1
        record.tokens += part.step_targets
        self._losses.targets += part.step_targets
        is_last = record.steps == self.total_steps
        is_logged = is_last or record.steps % self.log_every_steps == 0
        if is_logged or self.device.type != "cuda":
            self._losses.read()
        record.train_seconds += time.perf_counter() - self._clock
        self._stop_where_faulty()
        if is_logged:
            self._log_point()
        every = self.settings.validate_every_steps
        if self.valid is not None and (is_last or (record.steps % every == 0 if every else part.ends_epoch)):
            self._validate(part.epochs_done)
        self.on_progress(1)
        self._keep_or_leave(part, is_last)
        self._clock = time.perf_counter()

    def _stop_where_faulty(self) -> None:
        step = int(self.group.largest([float(self._losses.faulty_step)])[0])
        if step:
            raise ModelError(
                f"the training loss is not a number at step {step} of {self.total_steps}; {self._last_good()}. Give a "
                f"smaller learning_rate than {self.settings.learning_rate!r} or a smaller gradient_clip than "
                f"{self.settings.gradient_clip!r}; --resume-from goes on from a checkpoint with other settings"
            )

    def _last_good(self) -> str:
        return "no model was saved" if self.store is None else self.store.last_good

    def _log_point(self) -> None:
        loss = self.group.sums([self._losses.total])[0] / max(1, self._losses.targets)
        rate = self.settings.learning_rate * rate_factor(
            self.record.steps - 1, self.total_steps, self.settings.warmup_share
        )
        self._add_point({"train_loss": loss, "learning_rate": rate})
        self._losses.begin_again()

    def _add_point(self, values: dict[str, float], **position: float) -> None:
        self.record.curve.append({"step": self.record.steps, **position, **values})
        self.on_log(self.record.steps, values)

    @torch.no_grad()
    def _validate(self, epochs_done: float) -> None:
        """Measure the loss on the valid text: log-probabilities and counts are added up and divided once."""
        assert self.valid is not None
        self.model.eval()
        total, targets = 0.0, 0
        with self.trainer.precision_plugin.forward_context():
            for batch in self.valid:
                here = batch.to(self.device)
                hidden = self._selected(here)
                scores = chunked_log_probabilities(hidden, self.model.embedding.weight, here.targets, self.arithmetic)
                total -= scores.double().sum().item()
                targets += len(scores)
        self.model.train()
        total, targets_of_all = self.group.sums([total, targets])
        loss = total / targets_of_all
        if not math.isfinite(loss):
            raise ModelError(
                f"the validation loss is not a number after step {self.record.steps} of {self.total_steps}; "
                f"{self._last_good()}"
            )
        self._add_point({"valid_loss": loss}, epoch=epochs_done)
        if self.settings.patience:
            self._watch(loss)

    def _watch(self, loss: float) -> None:
        """Early stopping: keep the weights of the smallest loss, and end where it has not become smaller for long."""
        if loss < self._best_loss:
            self._best_loss, self._waited = loss, 0
            self.best_weights, self.record.best_step = whole_weights(self.model), self.record.steps
            return
        self._waited += 1
        if self._waited >= self.settings.patience and self.record.steps < self.total_steps:
            self.record.stopped_early = True
            self.trainer.should_stop = True

    # Checkpoints ------------------------------------------------------------------------------------------------

    def _keep_or_leave(self, part: TrainingBatch, is_last: bool) -> None:
        """Write a checkpoint where one is due or where this process has been asked to end, and then leave."""
        is_over = is_last or self.record.stopped_early
        due = self.store is not None and self.group.plan.is_first and self.store.is_due(self.record.steps)
        wanted, terminated = self.group.largest([float(due and not is_over), float(self._terminated)])
        if self.store is not None and (wanted or terminated):
            self._save((part.epoch + 1, 0) if part.ends_epoch else (part.epoch, part.index + 1))
        if terminated:
            self._say_where_it_ended()
            raise SystemExit(128 + signal.SIGTERM)

    def _save(self, next_batch: tuple[int, int]) -> None:
        assert self.store is not None
        self._losses.read()
        self._stop_where_faulty()
        tensors = capture(self.model, self.trainer.optimizers[0], self.group)
        interval = self.group.sums([self._losses.total])[0]
        if not all_finite(tensors):
            raise ModelError(
                f"weights are not finite after step {self.record.steps} of {self.total_steps}; {self._last_good()}. "
                f"Give a smaller learning_rate than {self.settings.learning_rate!r}"
            )
        if not self.group.plan.is_first:
            return
        tensors |= best_as_tensors(self.best_weights)
        record = self.record
        state = {
            "identity": self.store.identity,
            **record.as_state(),
            "total_steps": self.total_steps,
            "next_batch": next_batch,
            "interval": [interval, self._losses.targets],
            "best": None if record.best_step is None else [self._best_loss, record.best_step],
            "waited": self._waited,
            "ranks": self.group.plan.world_size,
        }
        self.store.save(Checkpoint(state, tensors))

    def _say_where_it_ended(self) -> None:
        if self.group.plan.is_first and self.store is not None:
            print(
                f"ended by SIGTERM after step {self.record.steps:,} of {self.total_steps:,}; the same command goes on "
                "from there",
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
        restore(self.model, self.trainer.optimizers[0], tensors)
        set_schedule(self.trainer.lr_scheduler_configs[0].scheduler, state["step"])
        record = self.record
        record.go_on_from(state)
        # What all ranks had gathered by then is now the first one's.
        self._losses.begin_again(state["interval"][0] if first else 0.0, state["interval"][1])
        self._waited = state["waited"]
        if state["best"]:
            self._best_loss, record.best_step = state["best"]
            self.best_weights = best_in(tensors)
        self.batches.start = tuple(state["next_batch"])
        if first:
            print(
                f"goes on from the checkpoint after step {self._resumed.step:,} of {self.total_steps:,}",
                file=sys.stderr,
            )
            for point in record.curve:
                self.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})

    def on_train_start(self) -> None:
        """Validate once before training, or set dropout's generators to where they were."""
        # Lightning's own handler, which was registered just now, would ask other ranks from within the signal.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._terminate)
        if self._resumed is not None:
            plan = self.group.plan
            restore_generators(self._resumed.tensors, plan.rank, plan.world_size, self.batches.seed, self._resumed.step)
            self.on_progress(self._resumed.step)
            self._resumed = None
            if self.record.stopped_early or self.record.steps >= self.total_steps:
                self.trainer.should_stop = True
        elif self.valid is not None:
            self._validate(0.0)
        self._clock = time.perf_counter()

    def _terminate(self, *_: Any) -> None:
        self._terminated = True

    def on_train_end(self) -> None:
        """Put divided weights together while all ranks are there."""
        if self.group.plan.strategy == "fsdp":
            self.final_weights = whole_weights(self.model)

    # What Lightning asks for ------------------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Divide the model among ranks where the strategy says so."""
        if self.group.plan.strategy == "fsdp":
            mesh: Any = self.device_mesh
            divide_model(self.model, mesh["data_parallel"])

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> Any:
        """AdamW and its schedule of learning rates."""
        optimiser, schedule = make_optimiser(self.model, self.settings, self.total_steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
