"""The training of the Transformer as Lightning sees it: its loss, its validation and its early stopping."""

import math
from typing import Any

import torch
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatch, TrainingBatches, ValidBatches
from tasks.language_model.training.division import divide_model
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.training.checkpoints.checkpoint import Checkpoint
from tasks.training.checkpoints.state import best_as_tensors, best_in, whole_weights
from tasks.training.record import TrainingRecord
from tasks.training.resumable_training import ResumableTraining, TrainingRun


class LanguageModelTraining(ResumableTraining):
    """One language model, and what is measured and kept of its training."""

    loss_remedy = "; --resume-from goes on from a checkpoint with other settings"
    model: TransformerLanguageModel
    settings: TrainingSettings
    valid: ValidBatches | None

    def __init__(
        self,
        model: TransformerLanguageModel,
        settings: TrainingSettings,
        batches: TrainingBatches,
        valid: ValidBatches | None,
        run: TrainingRun,
    ):
        super().__init__(model, settings, batches, valid, run, TrainingRecord())
        self.best_weights: dict[str, Tensor] | None = None
        self.final_weights: dict[str, Tensor] | None = None
        """The whole weights at the end, where they were divided among ranks."""
        self._best_loss, self._waited = math.inf, 0

    # The loss ---------------------------------------------------------------------------------------------------

    def training_step(self, part: TrainingBatch, batch_index: int) -> Tensor:
        """Loss of a part, so scaled that the mean over ranks and parts is the step's loss in nats a target."""
        parts = self.group.plan.world_size * self.settings.accumulate
        divisor = max(1, part.step_targets) / parts
        loss = self._loss_sum(part.batch) / divisor
        self.losses.add(self.record.steps + 1, loss, divisor=divisor)
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

    def on_train_batch_end(self, outputs: Any, part: TrainingBatch, batch_index: int) -> None:
        """A step is done after its last part."""
        if part.is_last_part:
            self.end_step(part, part.step_targets)

    # Validation -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Validate once before training."""
        if self.valid is not None:
            self.validate(0.0)

    @torch.no_grad()
    def validate(self, epochs_done: float) -> None:
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
                f"the validation loss is not a number after step {self.record.steps} of {self.run.total_steps}; "
                f"{self.last_good}"
            )
        self.add_point({"valid_loss": loss}, epoch=epochs_done)
        if self.settings.patience:
            self._watch(loss)

    def _watch(self, loss: float) -> None:
        """Early stopping: keep the weights of the smallest loss, and end where it has not become smaller for long."""
        if loss < self._best_loss:
            self._best_loss, self._waited = loss, 0
            self.best_weights, self.record.best_step = whole_weights(self.model), self.record.steps
            return
        self._waited += 1
        if self._waited >= self.settings.patience and self.record.steps < self.run.total_steps:
            self.record.stopped_early = True
            self.trainer.should_stop = True

    # What a checkpoint keeps of early stopping --------------------------------------------------------------------

    def further_state(self) -> dict[str, Any]:
        """The smallest loss and its step, and how many validations have been waited for a smaller one."""
        best_step = self.record.best_step
        return {"best": None if best_step is None else [self._best_loss, best_step], "waited": self._waited}

    def further_tensors(self) -> dict[str, Tensor]:
        """The best weights so far."""
        return best_as_tensors(self.best_weights)

    def take_up(self, checkpoint: Checkpoint) -> None:
        """Go on waiting with the best weights so far."""
        self._waited = checkpoint.state["waited"]
        if checkpoint.state["best"]:
            self._best_loss, self.record.best_step = checkpoint.state["best"]
            self.best_weights = best_in(checkpoint.tensors)

    # A model that is divided among ranks --------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Divide the model among ranks where the strategy says so."""
        if self.group.plan.strategy == "fsdp":
            mesh: Any = self.device_mesh
            divide_model(self.model, mesh["data_parallel"])

    def on_train_end(self) -> None:
        """Put divided weights together while all ranks are there."""
        if self.group.plan.strategy == "fsdp":
            self.final_weights = whole_weights(self.model)
