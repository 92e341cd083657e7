"""Training a recogniser with Lightning, by the same rules of ranks and checkpoints as the language model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tasks.errors import ModelError
from tasks.speech.recogniser.network import RecogniserNetwork, ValidSpeech
from tasks.speech.recogniser.settings import RecogniserTraining
from tasks.speech.recogniser.speech_batches import SpeechBatch, SpeechBatches
from tasks.training.checkpoints import CheckpointStore
from tasks.training.fitting import fit
from tasks.training.ranks.plan import RankPlan
from tasks.training.record import TrainingRecord
from tasks.training.resumable_training import ResumableTraining, TrainingRun
from tasks.training.stage import Log, log_nothing


@dataclass
class RecogniserRecord(TrainingRecord):
    """What a training run did, from its beginning; ``tokens`` counts units.

    Points of the curve: ``step``, ``train_loss`` (the transducer's, nats a unit, mean since the last such point),
    ``encoder_loss`` (the same of the loss on the encoder alone), ``learning_rate``; points of validation: ``step``,
    ``epoch``, ``valid_loss`` (nats a unit) and ``valid_wer`` (greedy decoding, a share).
    """

    audio_seconds: float = 0.0
    """Speech that was trained on, over all epochs and devices."""

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {**super().as_state(), "audio_seconds": self.audio_seconds}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint's ``state`` says was done."""
        super().go_on_from(state)
        self.audio_seconds = state["audio_seconds"]


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


def train(
    network: RecogniserNetwork,
    batches: SpeechBatches,
    settings: RecogniserTraining,
    *,
    valid: ValidSpeech | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    plan: RankPlan | None = None,
    store: CheckpointStore | None = None,
) -> RecogniserRecord:
    """Train ``network`` in place and say what was done; it is on the processor and in evaluation mode afterwards.

    With a ``store``, training goes on from its checkpoint, if there is one, and writes others on the way. All ranks of
    ``plan`` call this together. Raises ``ModelError`` where the loss is no longer a number, and ``SystemExit`` with
    143 after SIGTERM, when a checkpoint has been written.
    """
    network.train()
    training = fit(
        lambda run: RecogniserTrainingModule(network, settings, batches, valid, run),
        batches.total_steps,
        title="train-recogniser",
        seed=settings.seed,
        on_log=on_log,
        log_every_steps=log_every_steps,
        plan=plan or RankPlan(),
        store=store,
    )
    network.cpu().eval()
    return training.record
