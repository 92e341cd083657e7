"""The loop that every training shares: Lightning runs it, saves its checkpoints and goes on from them.

A model's own package has its loss, its batches and its validation. The curve, the losses since its last point, early
stopping and the states of the generators lie in Lightning's checkpoints, so an interrupted run comes to the same bits.
"""

import logging
import math
import signal
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor, nn

from tasks.errors import ModelError
from tasks.training.curve import Log, log_nothing
from tasks.training.optimiser import OptimisationSettings, arithmetic_of, make_optimiser, rate_factor
from tasks.training.ranks.plan import RankPlan
from tasks.training.ranks.processes import lost_ranks_named

if TYPE_CHECKING:
    from lightning.pytorch.utilities.types import OptimizerLRScheduler

LAST = "last.ckpt"
"""Name of the checkpoint in a work folder."""
_TIMEOUT = timedelta(minutes=30)
"""Longest time that a process waits for another one that is alive."""


class StepBatch(Protocol):
    """What is known of the optimiser step that a batch belongs to."""

    step_targets: int
    """Targets of the whole step, over all processes."""
    epochs_done: float
    """Epochs that are through after the step."""
    is_last_part: bool
    """Whether the optimiser steps after the batch."""
    ends_epoch: bool
    """Whether the step is the last of its epoch."""
    step_seconds: float
    """Seconds of speech of this process's part."""


class Batches(Protocol):
    """The batches of all epochs that this process computes; Lightning keeps their state in its checkpoints."""

    def __len__(self) -> int:
        """Their number."""

    def __iter__(self) -> Iterator[Any]:
        """Those that are left."""

    def state_dict(self) -> dict[str, int]:
        """How many are done."""

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on behind them."""


@dataclass(frozen=True)
class Checkpoints:
    """Where the checkpoints of a run are, and how often one is written."""

    folder: Path
    identity: dict[str, str]
    """Hashes that a checkpoint must have too: ``vocabulary``, ``architecture``, ``order``."""
    every_steps: int = 0
    every_seconds: float = 0.0
    """Used where ``every_steps`` is 0; with 0 as well there are none."""
    begin_with: Path | None = None
    """The checkpoint to go on from; ``None``: begin with the first step."""
    remove: Callable[[], None] = lambda: None
    """Removes the folder: the result is complete."""


@dataclass
class TrainingRecord:
    """What a training run did, from its beginning, over all devices and whether or not it was interrupted."""

    arithmetic: str = "float32"
    """Number type of the wide products."""
    steps: int = 0
    """Optimiser steps."""
    tokens: int = 0
    """Targets that were trained on, over all epochs and devices."""
    train_seconds: float = 0.0
    """Time of the steps, without validation and start-up."""
    audio_seconds: float = 0.0
    """Speech that was trained on, over all epochs and devices."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """Points of training: ``step``, ``train_loss`` (nats a target, mean since the last such point), ``learning_rate``
    and further losses. Points of validation, before training, after each epoch or every so many steps, and at the end:
    ``step``, ``epoch`` and ``valid_loss`` (nats a target)."""
    resumed_step: int | None = None
    """The step of the checkpoint that the last part of the run began with."""
    best_step: int | None = None
    """The step whose weights are the result, with early stopping."""
    stopped_early: bool = False
    """Whether training ended before all epochs were through."""

    @property
    def tokens_per_second(self) -> float | None:
        """Targets a second; ``None`` before the first step."""
        return self.tokens / self.train_seconds if self.train_seconds else None


class Training(LightningModule, ABC):
    """One model, its optimiser and its losses.

    A subclass has ``training_step``, which also gives its losses to ``note``.
    """

    saved_thing: ClassVar[str] = "model"
    """Name of the result in messages."""
    validates_first: ClassVar[bool] = True
    """Whether it validates before the first step."""

    def __init__(self, model: nn.Module, settings: OptimisationSettings, total_steps: int, valid: object) -> None:
        """``valid`` is ``None`` where there is nothing to validate on."""
        super().__init__()
        self.model, self.settings, self.total_steps, self.valid = model, settings, total_steps, valid
        self.arithmetic = arithmetic_of(settings)
        self.noted: list[Tensor] = []

    @property
    def loss_names(self) -> tuple[str, ...]:
        """As the curve has them; the first one is minimised."""
        return ("train_loss",)

    @abstractmethod
    def measure(self) -> list[float]:
        """Sums over this process's part of the held-out data; a loss in nats is the first."""

    def valid_values(self, sums: list[float]) -> dict[str, float]:
        """The values of a validation from the sums over all processes."""
        return {"valid_loss": sums[0] / sums[1]}

    def note(self, *losses: Tensor, divisor: float) -> None:
        """Note the losses of a batch, by name; times ``divisor`` each is a sum in nats."""
        self.noted.append(torch.stack([loss.detach().double() for loss in losses]) * divisor)

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: object, **__: object) -> None:
        """Scale the gradient down to the largest norm allowed; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def configure_optimizers(self) -> "OptimizerLRScheduler":
        """AdamW and its schedule of learning rates."""
        optimiser, schedule = make_optimiser(self.model, self.settings, self.total_steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class _Progress(Callback):
    """The curve, the validations and early stopping, before the checkpoint of a step is written."""

    def __init__(
        self, identity: dict[str, str], seed: int, patience: int, on_log: Log, log_every_steps: int, last_good: str
    ) -> None:
        self.identity, self.seed, self.patience = identity, seed, patience
        self.on_log, self.log_every_steps, self.last_good = on_log, log_every_steps, last_good
        self.record = TrainingRecord()
        self.weights: dict[str, Tensor] | None = None
        """Those of the smallest loss, or at the end the whole of divided ones."""
        self._totals: list[float] = []
        self._targets, self._best_loss, self._waited, self._clock = 0, math.inf, 0, 0.0
        self._generators: dict[str, Tensor] = {}

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Validate before the first step, or set the generators that dropout draws from."""
        assert isinstance(module, Training)
        record = self.record
        record.arithmetic = str(module.arithmetic).removeprefix("torch.")
        if record.resumed_step is None:
            if module.valid is not None and module.validates_first:
                self._validate(trainer, module, 0.0)
        else:
            _set_generators(self._generators, trainer, self.seed, record.steps)
            trainer.should_stop = record.stopped_early
            if trainer.is_global_zero:
                print(
                    f"goes on from the checkpoint after step {record.steps:,} of {module.total_steps:,}",
                    file=sys.stderr,
                )
                for point in record.curve:
                    self.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})
        self._clock = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: object, batch: StepBatch, batch_idx: int
    ) -> None:
        """Count the step; log and validate where that is due."""
        assert isinstance(module, Training)
        if not batch.is_last_part:
            return
        record = self.record
        record.steps += 1
        record.tokens += batch.step_targets
        self._targets += batch.step_targets
        if batch.step_seconds or trainer.world_size > 1:
            seconds = torch.tensor(batch.step_seconds, dtype=torch.float64, device=module.device)
            record.audio_seconds += float(_sums(trainer, seconds))
        is_last = record.steps == module.total_steps
        is_logged = is_last or record.steps % self.log_every_steps == 0
        if is_logged or module.device.type != "cuda":  # a GPU has to be waited for
            self._read(trainer, module)
        record.train_seconds += time.perf_counter() - self._clock
        if is_logged:
            first, *others = self._totals
            rate = module.settings.learning_rate * rate_factor(
                record.steps - 1, module.total_steps, module.settings.warmup_share
            )
            targets = max(1, self._targets)
            further = {name: total / targets for name, total in zip(module.loss_names[1:], others, strict=True)}
            self._add_point({module.loss_names[0]: first / targets, "learning_rate": rate, **further})
            self._totals, self._targets = [], 0
        every = module.settings.validate_every_steps
        if module.valid is not None and (is_last or (record.steps % every == 0 if every else batch.ends_epoch)):
            self._validate(trainer, module, batch.epochs_done)
        self._clock = time.perf_counter()

    def _read(self, trainer: Trainer, module: Training) -> None:
        """Add up the losses that have come, over all processes; ``ModelError`` where one is not a number."""
        if not module.noted:
            return
        parts = len(module.noted)
        values = _sums(trainer, torch.stack(module.noted)).tolist()
        module.noted = []
        for number, losses in enumerate(values):
            self._totals = [a + b for a, b in zip(self._totals or [0.0] * len(losses), losses, strict=True)]
            if not math.isfinite(losses[0]):
                step = self.record.steps - (parts - 1 - number) // trainer.accumulate_grad_batches
                raise ModelError(
                    f"the training loss is not a number at step {step} of {module.total_steps}; no "
                    f"{module.saved_thing} was saved. Give a smaller learning_rate than "
                    f"{module.settings.learning_rate!r} or a smaller gradient_clip than "
                    f"{module.settings.gradient_clip!r}{self.last_good}"
                )

    @torch.no_grad()
    def _validate(self, trainer: Trainer, module: Training, epochs_done: float) -> None:
        """Sums over the held-out data of all processes, divided once."""
        module.model.eval()
        with trainer.precision_plugin.forward_context():
            measured = torch.tensor(module.measure(), dtype=torch.float64, device=module.device)
        module.model.train()
        sums = _sums(trainer, measured).tolist()
        if not math.isfinite(sums[0]):
            raise ModelError(
                f"the validation loss is not a number after step {self.record.steps} of {module.total_steps}; no "
                f"{module.saved_thing} was saved{self.last_good}"
            )
        values = module.valid_values(sums)
        self._add_point(values, epoch=epochs_done)
        if self.patience:
            self._watch(trainer, module, values["valid_loss"])

    def _watch(self, trainer: Trainer, module: Training, loss: float) -> None:
        """Early stopping: hold the weights of the smallest loss, and end where it has not become smaller for long."""
        if loss < self._best_loss:
            self._best_loss, self._waited, self.record.best_step = loss, 0, self.record.steps
            self.weights = whole_weights(module.model)
            return
        self._waited += 1
        if self._waited >= self.patience and self.record.steps < module.total_steps:
            self.record.stopped_early = trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Put divided weights together while all processes are there."""
        assert isinstance(module, Training)
        if module.device_mesh is not None and self.weights is None:
            self.weights = whole_weights(module.model)

    def _add_point(self, values: dict[str, float], **position: float) -> None:
        self.record.curve.append({"step": self.record.steps, **position, **values})
        self.on_log(self.record.steps, values)

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Put in everything that Lightning does not know; all processes call this together."""
        assert isinstance(module, Training)
        self._read(trainer, module)
        checkpoint["training"] = {
            "identity": self.identity,
            "record": asdict(self.record),
            "totals": self._totals,
            "targets": self._targets,
            "best": (self._best_loss, self._waited, self.weights),
            "generators": _get_generators(trainer, module),
        }

    def on_load_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take it up."""
        state = checkpoint["training"]
        self.record = TrainingRecord(**state["record"])
        self.record.resumed_step = self.record.steps
        self._totals, self._targets, self._generators = state["totals"], state["targets"], state["generators"]
        self._best_loss, self._waited, self.weights = state["best"]


class _Saving(ModelCheckpoint):
    """Saves between steps alone, also when SIGTERM ends the training."""

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: StepBatch, batch_idx: int
    ) -> None:
        """Save where it is due."""
        if not batch.is_last_part or trainer.should_stop:
            return
        if trainer.strategy.reduce_boolean_decision(trainer.received_sigterm, all=False):
            assert self.dirpath is not None
            trainer.save_checkpoint(Path(self.dirpath) / LAST)
            if trainer.is_global_zero:
                message = f"ended by SIGTERM after step {trainer.global_step:,}; the same command goes on from there"
                print(message, file=sys.stderr)
            raise SIGTERMException
        else:
            super().on_train_batch_end(trainer, pl_module, None, batch, batch_idx)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save nothing: the model itself is written next."""


@dataclass(frozen=True)
class Trained:
    """The end of a training run."""

    record: TrainingRecord
    weights: dict[str, Tensor] | None
    """Those of the best step, or the whole of divided ones; ``None``: the model has them."""


def fit(
    module: Training,
    batches: Batches,
    *,
    seed: int,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
    plan: RankPlan | None = None,
    checkpoints: Checkpoints | None = None,
    accumulate: int = 1,
    patience: int = 0,
) -> Trained:
    """Train to the end; the model stays on its device.

    Dropout is a function of ``seed``, and no generator of the caller's is moved. ``accumulate`` is the number of
    batches that make a step. All processes of ``plan`` call this together. Raises ``ModelError`` where the loss is no
    longer a number, and ``SystemExit`` with 143 after SIGTERM.
    """
    plan = plan or RankPlan()
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        torch.manual_seed(_rank_seed(seed, plan.rank))
        has_bar = plan.is_first and sys.stdout.isatty()
        identity = checkpoints.identity if checkpoints else {}
        begin_with = checkpoints.begin_with if checkpoints else None
        last_good = f"; the last checkpoint is in {str(checkpoints.folder)!r}" if checkpoints else ""
        progress = _Progress(
            identity, seed, patience, on_log if plan.is_first else log_nothing, log_every_steps, last_good
        )
        if begin_with is not None:
            check_identity(begin_with, identity)
        trainer = Trainer(
            accelerator="auto",
            **_devices_of(plan),
            precision="bf16-mixed" if module.arithmetic == torch.bfloat16 else "32-true",
            # All epochs are one to Lightning: the last may be a fraction, and the batches say where each ends.
            max_epochs=1,
            accumulate_grad_batches=accumulate,
            limit_val_batches=0,
            callbacks=[progress, *_saving(checkpoints), *([TQDMProgressBar()] if has_bar else [])],
            logger=False,
            enable_checkpointing=checkpoints is not None,
            enable_progress_bar=has_bar,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        try:
            with lost_ranks_named(plan):
                trainer.fit(module, train_dataloaders=batches, ckpt_path=begin_with, weights_only=True)
        except SIGTERMException:
            raise SystemExit(128 + signal.SIGTERM) from None
        except SystemExit as ended:  # Lightning exits with 1
            if isinstance(ended.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
    return Trained(progress.record, progress.weights)


def check_identity(path: Path, identity: dict[str, str]) -> None:
    """``ModelError`` where a checkpoint is missing, damaged, or of another vocabulary, model or text."""
    try:
        found = torch.load(path, map_location="meta", weights_only=True, mmap=True)["training"]["identity"]
    except FileNotFoundError:
        raise ModelError(f"checkpoint {str(path)!r} does not exist; give a file, or no resources.resume_from") from None
    except Exception:
        raise ModelError(f"checkpoint {str(path)!r} is damaged; train with --set resources.resume=false") from None
    for part in identity:
        if found.get(part) != identity[part]:
            name = "text and order of batches" if part == "order" else part
            raise ModelError(
                f"checkpoint {str(path)!r} is of another {name}; give the one that it belongs to, or train with --set "
                "resources.resume=false and no resources.resume_from"
            )


def _saving(checkpoints: Checkpoints | None) -> list[Callback]:
    if checkpoints is None:
        return []
    steps, seconds = checkpoints.every_steps, checkpoints.every_seconds
    return [
        _Saving(
            checkpoints.folder,
            save_top_k=0,
            save_last=True,
            every_n_train_steps=steps if steps or not seconds else None,
            train_time_interval=timedelta(seconds=seconds) if seconds and not steps else None,
            enable_version_counter=False,
        )
    ]


def _devices_of(plan: RankPlan) -> dict[str, Any]:
    """Arguments of ``Trainer`` for a plan."""
    if plan.strategy == "single":
        return {"devices": 1}
    from lightning.pytorch.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy

    strategy: DDPStrategy | ModelParallelStrategy
    if plan.strategy == "ddp":
        strategy = DDPStrategy(timeout=_TIMEOUT)
    else:
        # Lightning's own "fsdp" refuses a processor; this one leaves the division to configure_model.
        strategy = ModelParallelStrategy(plan.world_size, 1, save_distributed_checkpoint=False, timeout=_TIMEOUT)
    return {
        "devices": plan.devices,
        "num_nodes": plan.nodes,
        "strategy": strategy,
        "plugins": [TorchElasticEnvironment()],
    }


def _sums(trainer: Trainer, values: Tensor) -> Tensor:
    """The sum over processes of each value, on the processor."""
    return trainer.strategy.reduce(values, reduce_op="sum").cpu()


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all weights, on the processor; all processes call this together."""
    from torch.distributed.tensor import DTensor

    whole = {
        name: weight.full_tensor() if isinstance(weight, DTensor) else weight
        for name, weight in model.named_parameters()
    }
    return {name: weight.detach().cpu().clone() for name, weight in whole.items()}


def _get_generators(trainer: Trainer, module: LightningModule) -> dict[str, Tensor]:
    """The states of the generators of all processes, a row each."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    gathered = {name: trainer.strategy.all_gather(state.to(module.device)) for name, state in states.items()}
    return {name: state.reshape(trainer.world_size, -1).cpu() for name, state in gathered.items()}


def _set_generators(states: dict[str, Tensor], trainer: Trainer, seed: int, step: int) -> None:
    """Set this process's generators to where they were; with another number of processes, to a new place."""
    rank = trainer.global_rank
    if len(states["cpu"]) != trainer.world_size:
        torch.manual_seed(_rank_seed(seed, rank, step))
        return
    torch.set_rng_state(states["cpu"][rank])
    if torch.cuda.is_available() and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"][rank])


def _rank_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a process's dropout: the first one has the seed itself at the beginning, all others their own."""
    if rank == step == 0:
        return seed
    return int(np.random.SeedSequence([seed, rank, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))
