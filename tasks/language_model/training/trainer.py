"""Training a language model with Lightning: pretraining and adaptation are the same loop on other text."""

import copy
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tasks.errors import ModelError, ParameterError, ResourceError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatch, TrainingBatches, ValidBatches
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.torch_setup import set_dropout
from tasks.training.checkpoints import Checkpoint, CheckpointStore
from tasks.training.fitting import fit
from tasks.training.ranks.plan import RankPlan
from tasks.training.record import TrainingRecord
from tasks.training.resumable_training import ResumableTraining, TrainingRun
from tasks.training.stage import Log, log_nothing
from tasks.training.tensors import BEST, whole_weights

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

_COMPILERS = ("g++", "clang++", "c++")


def check_compiler() -> None:
    """``ResourceError`` where this machine has nothing to compile with."""
    wanted = (os.environ["CXX"],) if os.environ.get("CXX") else _COMPILERS
    if not any(shutil.which(name) for name in wanted):
        raise ResourceError(
            f"compile is on and there is no C++ compiler ({', '.join(wanted)}); install one, name it in the "
            "environment variable CXX, or switch compile off"
        )
    if torch.cuda.is_available():
        from torch.utils._triton import has_triton

        if not has_triton():
            raise ResourceError(
                "compile is on and PyTorch finds no Triton, which it compiles for a GPU with; install "
                "triton, or switch compile off"
            )


@contextmanager
def compile_blocks(blocks: nn.ModuleList, compiled: bool) -> Iterator[None]:
    """Have ``blocks`` run compiled: what one of them is compiled to serves all, and rows of any number and length."""
    if not compiled:
        yield
        return
    for block in blocks:
        block.compile(dynamic=True)
    try:
        yield
    finally:
        for block in blocks:
            block._compiled_call_impl = None


def divide_model(model: TransformerLanguageModel, mesh: "DeviceMesh") -> None:
    """Divide the weights among the ranks of ``mesh`` (FSDP2), in place: each block, and the rest together."""
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    # The embedding is used once more after the model has run, by the projection onto the vocabulary.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)


class LanguageModelTraining(ResumableTraining):
    """One language model, and what is measured and kept of its training."""

    loss_remedy = "; resources.resume_from goes on from a checkpoint with other settings"
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

    def on_train_batch_end(self, outputs: object, part: TrainingBatch, batch_index: int) -> None:
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
        return {f"{BEST}{name}": value for name, value in (self.best_weights or {}).items()}

    def take_up(self, checkpoint: Checkpoint) -> None:
        """Go on waiting with the best weights so far."""
        self._waited = checkpoint.state["waited"]
        if checkpoint.state["best"]:
            self._best_loss, self.record.best_step = checkpoint.state["best"]
            best = {name: value for name, value in checkpoint.tensors.items() if name.startswith(BEST)}
            self.best_weights = {name.removeprefix(BEST): value for name, value in best.items()}

    # A model that is divided among ranks --------------------------------------------------------------------------

    def configure_model(self) -> None:
        """Divide the model among ranks where the strategy says so."""
        if self.group.plan.strategy == "fsdp":
            mesh = self.device_mesh
            assert mesh is not None  # the strategy makes it
            divide_model(self.model, mesh["data_parallel"])

    def on_train_end(self) -> None:
        """Put divided weights together while all ranks are there."""
        if self.group.plan.strategy == "fsdp":
            self.final_weights = whole_weights(self.model)


def train(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: TrainingSettings,
    seed: int,
    *,
    valid: EncodedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    title: str = "training",
    plan: RankPlan | None = None,
    store: CheckpointStore | None = None,
    compiled: bool = False,
) -> TrainingRecord:
    """Train ``model`` in place and say what was done.

    The order of the batches and dropout are functions of ``seed``. ``on_log`` is called every ``log_every_steps``
    steps and after each validation. With a ``store``, training goes on from its checkpoint, if there is one, and
    writes others on the way. All ranks of ``plan`` call this together, and all have the trained model in the end.

    Raises ``ModelError`` where the loss is no longer a number, ``ParameterError`` where early stopping has nothing to
    go by, and ``SystemExit`` with 143 after SIGTERM, when a checkpoint has been written.
    """
    if settings.patience and valid is None:
        raise ParameterError(
            f"patience is {settings.patience!r} and there is no valid text to stop by; give --valid, or patience 0"
        )
    plan = plan or RankPlan()
    batches = TrainingBatches(text, model.architecture, settings, seed, plan)
    valid_batches = None if valid is None else ValidBatches(valid, model.architecture, plan)
    set_dropout(model, settings.dropout)
    # A model that was read from a folder is in evaluation mode, and Lightning would leave it there: without dropout.
    model.train()
    # FSDP replaces the weights by parts of them.
    trained = copy.deepcopy(model) if plan.strategy == "fsdp" else model
    with compile_blocks(trained.blocks, compiled):
        training = fit(
            lambda run: LanguageModelTraining(trained, settings, batches, valid_batches, run),
            batches.total_steps(),
            title=title,
            seed=seed,
            on_log=on_log,
            log_every_steps=log_every_steps,
            plan=plan,
            store=store,
            accumulate=settings.accumulate,
        )
    kept = training.best_weights or training.final_weights
    if kept is not None:
        model.load_state_dict(model.state_dict() | kept)  # no training changes the tables of languages
    model.cpu().eval()
    return training.record
