"""The training of a recogniser as Lightning sees it: its losses and its validation."""

import math
from typing import Any

from torch import Tensor

from tasks.errors import ModelError
from tasks.speech.recogniser.network import RecogniserNetwork
from tasks.speech.recogniser.record import RecogniserRecord
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatch, SpeechBatches
from tasks.speech.recogniser.validation import ValidSpeech
from tasks.training.resumable_training import ResumableTraining, TrainingRun


class RecogniserTrainingModule(ResumableTraining):
    """One network, and what is measured of its training."""

    saved_thing = "recogniser"
    model: RecogniserNetwork
    settings: RecogniserTraining
    valid: ValidSpeech | None
    record: RecogniserRecord

    def __init__(
        self,
        network: RecogniserNetwork,
        settings: RecogniserTraining,
        batches: SpeechBatches,
        valid: ValidSpeech | None,
        run: TrainingRun,
    ):
        losses = ["train_loss", "encoder_loss"] if settings.ctc_weight else ["train_loss"]
        super().__init__(network, settings, batches, valid, run, RecogniserRecord(), losses)

    def training_step(self, batch: SpeechBatch, batch_index: int) -> Tensor:
        """Loss of this rank's utterances, so scaled that the mean over ranks is the step's, in nats a unit."""
        divisor = max(1, batch.step_units) / self.group.plan.world_size
        loss, *encoder_loss = (part * batch.weight / divisor for part in self.model(batch) if part is not None)
        self.losses.add(self.record.steps + 1, loss, *encoder_loss, divisor=divisor)
        return loss + self.settings.ctc_weight * encoder_loss[0] if encoder_loss else loss

    def on_train_batch_end(self, outputs: Any, batch: SpeechBatch, batch_index: int) -> None:
        """Each batch is a step."""
        self.record.audio_seconds += self.group.sums([batch.step_seconds])[0]
        self.end_step(batch, batch.step_units)

    def validate(self, epochs_done: float) -> None:
        """Measure the loss and the word error rate on held-out speech: sums over ranks, divided once."""
        assert self.valid is not None
        plan = self.group.plan
        sums = self.valid.measure(self.model, plan.rank, plan.world_size)
        self.model.train()
        loss, units, errors, words = self.group.sums(sums)
        if not math.isfinite(loss):
            raise ModelError(f"the validation loss is not a number after step {self.record.steps}; {self.last_good}")
        self.add_point({"valid_loss": loss / units, "valid_wer": errors / words}, epoch=epochs_done)
