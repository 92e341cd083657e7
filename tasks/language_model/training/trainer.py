"""Training a language model with Lightning: pretraining and adaptation are the same loop on other text."""

import copy
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tasks.errors import ParameterError, ResourceError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.training.batches import TrainingBatch, TrainingBatches, ValidBatches
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy, chunked_log_probabilities
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.torch_setup import set_dropout
from tasks.training.curve import Log, log_nothing
from tasks.training.loop import Checkpoints, Training, TrainingRecord, fit
from tasks.training.ranks.plan import RankPlan

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


class LanguageModelTraining(Training):
    """One language model: its loss and its validation, in nats a target."""

    model: TransformerLanguageModel
    settings: TrainingSettings
    valid: ValidBatches | None

    def training_step(self, part: TrainingBatch, batch_index: int) -> Tensor:
        """Loss of a part, so scaled that the mean over ranks and parts is the step's loss in nats a target."""
        divisor = max(1, part.step_targets) / (self.trainer.world_size * self.settings.accumulate)
        batch = part.batch
        loss = chunked_cross_entropy(
            self._selected(batch), self.model.embedding.weight, batch.targets, arithmetic=self.arithmetic
        )
        self.note(loss / divisor, divisor=divisor)
        return loss / divisor

    def _selected(self, batch: Batch) -> Tensor:
        """Hidden states (N, D) of the positions that count: padding and ignored targets cost no projection."""
        hidden = self.model(batch.tokens, batch.places, batch.segments).flatten(0, 1)  # (B x T, D)
        if len(batch.positions) == len(hidden):
            return hidden
        return hidden.index_select(0, batch.positions)

    def measure(self) -> list[float]:
        """The loss in nats, and the number of targets."""
        total, targets = 0.0, 0
        for batch in self.valid or ():
            here = batch.to(self.device)
            hidden = self._selected(here)
            scores = chunked_log_probabilities(hidden, self.model.embedding.weight, here.targets, self.arithmetic)
            total -= scores.double().sum().item()
            targets += len(scores)
        return [total, targets]

    def configure_model(self) -> None:
        """Divide the weights among the ranks (FSDP2) where the strategy says so: each block, and the rest together."""
        if self.device_mesh is None:
            return
        from torch.distributed.fsdp import fully_shard

        mesh = self.device_mesh["data_parallel"]
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        # The embedding is used once more after the model has run, by the projection onto the vocabulary.
        fully_shard(self.model, mesh=mesh, reshard_after_forward=False)


def train(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: TrainingSettings,
    seed: int,
    *,
    valid: EncodedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    plan: RankPlan | None = None,
    checkpoints: Checkpoints | None = None,
    compiled: bool = False,
) -> TrainingRecord:
    """Train ``model`` in place and say what was done.

    The order of the batches and dropout are functions of ``seed``. ``on_log`` is called every ``log_every_steps``
    steps and after each validation. All ranks of ``plan`` call this together, and all have the trained model in the
    end. Raises what ``fit`` does, and ``ParameterError`` where early stopping has nothing to go by.
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
        ended = fit(
            LanguageModelTraining(trained, settings, batches.total_steps(), valid_batches),
            batches,
            seed=seed,
            on_log=on_log,
            log_every_steps=log_every_steps,
            plan=plan,
            checkpoints=checkpoints,
            accumulate=settings.accumulate,
            patience=settings.patience,
        )
    if ended.weights is not None:
        model.load_state_dict(model.state_dict() | ended.weights)  # no training changes the tables of languages
    model.cpu().eval()
    return ended.record
