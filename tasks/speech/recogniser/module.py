"""The training of a recogniser as Lightning sees it: the loss, what happens after each step, and how it goes on."""

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
from tasks.language_model.training.checkpoints.checkpoint import Checkpoint
from tasks.language_model.training.checkpoints.state import all_finite, capture, restore, restore_generators
from tasks.language_model.training.checkpoints.store import CheckpointStore
from tasks.language_model.training.losses import StepLosses
from tasks.language_model.training.optimiser import arithmetic_of, make_optimiser, rate_factor, set_schedule
from tasks.language_model.training.ranks.group import RankGroup
from tasks.speech.recogniser.network import RecogniserNetwork
from tasks.speech.recogniser.record import RecogniserRecord
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatch, SpeechBatches
from tasks.speech.recogniser.validation import ValidSpeech


class RecogniserTrainingModule(LightningModule):
    """One network, its optimiser, and what is logged and kept of its training."""

    def __init__(
        self,
        network: RecogniserNetwork,
        settings: RecogniserTraining,
        batches: SpeechBatches,
        valid: ValidSpeech | None,
        group: RankGroup,
        store: CheckpointStore | None,
        on_log: Log,
        log_every_steps: int,
        on_progress: Callable[[int], Any],
    ):
        super().__init__()
        self.network = network
        self.settings, self.optimisation = settings, settings.optimisation
        self.batches, self.valid = batches, valid
        self.group, self.store = group, store
        self.on_log, self.log_every_steps, self.on_progress = on_log, log_every_steps, on_progress
        self.total_steps = batches.total_steps
        self.arithmetic = arithmetic_of(self.optimisation)
        self.record = RecogniserRecord(arithmetic=str(self.arithmetic).removeprefix("torch."))
        self._losses, self._encoder_losses = StepLosses(), StepLosses()
        self._resumed: Checkpoint | None = None
        self._terminated = False
        self._clock = 0.0

    # The loss ---------------------------------------------------------------------------------------------------

    def training_step(self, batch: SpeechBatch, batch_index: int) -> Tensor:
        """Loss of this rank's utterances, so scaled that the mean over ranks is the step's, in nats a unit."""
        divisor = max(1, batch.step_units) / self.group.plan.world_size
        loss, encoder_loss = self.network(batch)
        loss = loss * batch.weight / divisor
        self._losses.add(self.record.steps + 1, loss, divisor)
        if encoder_loss is None:
            return loss
        encoder_loss = encoder_loss * batch.weight / divisor
        self._encoder_losses.add(self.record.steps + 1, encoder_loss, divisor)
        return loss + self.settings.ctc_weight * encoder_loss

    # After each step --------------------------------------------------------------------------------------------

    def on_train_batch_end(self, outputs: Any, batch: SpeechBatch, batch_index: int) -> None:
        """Count the step; where they are due log a point, validate, and write a checkpoint."""
        record = self.record
        record.steps += 1
        record.tokens += batch.step_units
        record.audio_seconds += self.group.sums([batch.step_seconds])[0]
        self._losses.targets += batch.step_units
        is_last = record.steps == self.total_steps
        is_logged = is_last or record.steps % self.log_every_steps == 0
        if is_logged or self.device.type != "cuda":
            self._read_losses()
        record.train_seconds += time.perf_counter() - self._clock
        self._stop_where_faulty()
        if is_logged:
            self._log_point()
        every = self.settings.validate_every_steps
        if self.valid is not None and (is_last or (record.steps % every == 0 if every else batch.ends_epoch)):
            self._validate(batch.epochs_done)
        self.on_progress(1)
        self._keep_or_leave(batch, is_last)
        self._clock = time.perf_counter()

    def _read_losses(self) -> None:
        self._losses.read()
        self._encoder_losses.read()

    def _stop_where_faulty(self) -> None:
        step = int(self.group.largest([float(self._losses.faulty_step)])[0])
        if step:
            raise ModelError(
                f"the training loss is not a number at step {step} of {self.total_steps}; {self._last_good()}. Give a "
                f"smaller learning_rate than {self.settings.learning_rate!r} or a smaller gradient_clip than "
                f"{self.settings.gradient_clip!r}"
            )

    def _last_good(self) -> str:
        return "no recogniser was saved" if self.store is None else self.store.last_good

    def _log_point(self) -> None:
        sums = self.group.sums([self._losses.total, self._encoder_losses.total])
        units = max(1, self._losses.targets)
        rate = self.settings.learning_rate * rate_factor(
            self.record.steps - 1, self.total_steps, self.settings.warmup_share
        )
        values = {"train_loss": sums[0] / units, "learning_rate": rate}
        if self.settings.ctc_weight:
            values["encoder_loss"] = sums[1] / units
        self._add_point(values)
        self._losses.begin_again()
        self._encoder_losses.begin_again()

    def _add_point(self, values: dict[str, float], **position: float) -> None:
        self.record.curve.append({"step": self.record.steps, **position, **values})
        self.on_log(self.record.steps, values)

    def _validate(self, epochs_done: float) -> None:
        assert self.valid is not None
        plan = self.group.plan
        sums = self.valid.measure(self.network, plan.rank, plan.world_size)
        self.network.train()
        loss, units, errors, words = self.group.sums(sums)
        if not math.isfinite(loss):
            raise ModelError(f"the validation loss is not a number after step {self.record.steps}; {self._last_good()}")
        self._add_point({"valid_loss": loss / units, "valid_wer": errors / words}, epoch=epochs_done)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def _keep_or_leave(self, batch: SpeechBatch, is_last: bool) -> None:
        """Write a checkpoint where one is due or where this process has been asked to end, and then leave."""
        due = self.store is not None and self.group.plan.is_first and self.store.is_due(self.record.steps)
        wanted, terminated = self.group.largest([float(due and not is_last), float(self._terminated)])
        if self.store is not None and (wanted or terminated):
            self._save((batch.epoch + 1, 0) if batch.ends_epoch else (batch.epoch, batch.index + 1))
        if terminated:
            self._say_where_it_ended()
            raise SystemExit(128 + signal.SIGTERM)

    def _save(self, next_batch: tuple[int, int]) -> None:
        assert self.store is not None
        self._read_losses()
        self._stop_where_faulty()
        tensors = capture(self.network, self.trainer.optimizers[0], self.group)
        intervals = self.group.sums([self._losses.total, self._encoder_losses.total])
        if not all_finite(tensors):
            raise ModelError(
                f"weights are not finite after step {self.record.steps} of {self.total_steps}; {self._last_good()}. "
                f"Give a smaller learning_rate than {self.settings.learning_rate!r}"
            )
        if not self.group.plan.is_first:
            return
        state = {
            "identity": self.store.identity,
            **self.record.as_state(),
            "total_steps": self.total_steps,
            "next_batch": next_batch,
            "interval": [*intervals, self._losses.targets],
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
        restore(self.network, self.trainer.optimizers[0], tensors)
        set_schedule(self.trainer.lr_scheduler_configs[0].scheduler, state["step"])
        self.record.go_on_from(state)
        loss, encoder_loss, units = state["interval"]
        # What all ranks had gathered by then is now the first one's.
        self._losses.begin_again(loss if first else 0.0, units)
        self._encoder_losses.begin_again(encoder_loss if first else 0.0)
        self.batches.start = tuple(state["next_batch"])
        if first:
            print(
                f"goes on from the checkpoint after step {self._resumed.step:,} of {self.total_steps:,}",
                file=sys.stderr,
            )
            for point in self.record.curve:
                self.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})

    def on_train_start(self) -> None:
        """Set dropout's generators to where they were, and be ready for SIGTERM."""
        # Lightning's own handler, which was registered just now, would ask other ranks from within the signal.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._terminate)
        if self._resumed is not None:
            plan = self.group.plan
            restore_generators(self._resumed.tensors, plan.rank, plan.world_size, self.batches.seed, self._resumed.step)
            self.on_progress(self._resumed.step)
            self._resumed = None
            if self.record.steps >= self.total_steps:
                self.trainer.should_stop = True
        self._clock = time.perf_counter()

    def _terminate(self, *_: Any) -> None:
        self._terminated = True

    # What Lightning asks for ------------------------------------------------------------------------------------

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> Any:
        """AdamW and its schedule of learning rates."""
        optimiser, schedule = make_optimiser(self.network, self.optimisation, self.total_steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
