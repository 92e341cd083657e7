"""Training by Lightning, which runs it, saves it and resumes it: an interrupted run gives the same bits.

Checkpoints also hold the curve, early stopping and the generator of dropout. Lightning does not validate here: after a
checkpoint at the end of an epoch it would leave out that epoch's validation.
"""

import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn

from tasks.errors import ModelError
from tasks.torch_setup import has_bfloat16
from tasks.training.optimiser import OptimisationSettings, make_optimiser, rate_factor
from tasks.training.ranks import RankPlan
from tasks.training.stage import Checkpoints, Log, log_nothing
from tasks.training.steps import run_trainer, scheduled


class Step(NamedTuple):
    """An optimiser step, and the number of epochs completed after it."""

    rows: Any
    epoch: int
    epochs_done: float
    ends_epoch: bool


class Batches(ABC):
    """This process's batches of all epochs, of which the last may be a fraction; checkpoints say how many are done."""

    def __init__(self, epochs: float, plan: RankPlan, accumulate: int = 1) -> None:
        """``accumulate``: number of batches of a step."""
        self.plan, self.accumulate, self.done, self.steps = plan, accumulate, 0, list[Step]()
        for epoch in range(math.ceil(epochs)):
            share = min(1.0, epochs - epoch)
            order = self.order(epoch, share)
            for index, rows in enumerate(order, 1):
                self.steps.append(Step(rows, epoch, epoch + share * (index / len(order)), index == len(order)))

    @abstractmethod
    def order(self, epoch: int, share: float) -> Sequence[Any]:
        """The rows of each step of a share of an epoch."""

    @abstractmethod
    def targets(self, step: Step) -> int:
        """Number of targets of a step, over all processes."""

    @abstractmethod
    def made(self, numbers: range) -> Iterable[Any]:
        """The batches of these numbers."""

    def __len__(self) -> int:
        return len(self.steps) * self.accumulate

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        """Batches and the divisors of their losses: the mean over processes and batches is the loss of a step."""
        for batch in self.made(range(self.done, len(self))):
            targets = self.targets(self.steps[self.done // self.accumulate])
            self.done += 1
            yield batch, max(1, targets) / (self.plan.world_size * self.accumulate)
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

    arithmetic: str
    steps: int = 0
    tokens: int = 0
    """Number of targets in training; the ``logged_tokens`` are those up to the last training point of the curve."""
    logged_tokens: int = 0
    train_seconds: float = 0.0
    """Duration of the steps, without validation and start-up."""
    audio_seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)
    """Points of training (``step``, losses as nats a target since the last one, ``learning_rate``) and of validation
    (``step``, ``epoch``, ``valid_loss``)."""
    resumed_step: int | None = None
    stopped_early: bool = False
    best_step: int | None = None
    """With patience, the step of the smallest loss; its weights are the result. ``waited``: validations since then."""
    best_loss: float = math.inf
    waited: int = 0

    def measured(self, plan: RankPlan) -> dict[str, Any]:
        """Entries of a report, with those of the processes."""
        own = {name: getattr(self, name) for name in ("steps", "arithmetic", "curve", "resumed_step")}
        ranks = {name: getattr(plan, name) for name in ("devices", "nodes", "strategy")}
        return own | ranks | {"train_seconds": round(self.train_seconds, 3)}


class Training(LightningModule, ABC):
    """A model, its batches and its losses; ``training_step`` of a subclass passes its losses to ``note``."""

    validates_first: ClassVar[bool] = True
    loss_names: ClassVar[tuple[str, ...]] = ("train_loss",)
    """Names of the losses in the curve; the first one is minimised."""

    def __init__(
        self, model: nn.Module, settings: OptimisationSettings, seed: int, batches: Batches, valid: object = None,
        on_log: Log = log_nothing, log_every_steps: int = 10,
    ) -> None:  # fmt: skip
        """``valid``: held-out data for ``measure``."""
        super().__init__()
        self.model, self.settings, self.seed, self.batches, self.valid = model, settings, seed, batches, valid
        self.on_log, self.log_every_steps, self.patience = on_log, log_every_steps, getattr(settings, "patience", 0)
        lower = settings.precision == "bfloat16" or (settings.precision == "auto" and has_bfloat16())
        self.arithmetic = torch.bfloat16 if lower else torch.float32
        self.record = TrainingRecord("bfloat16" if lower else "float32")
        self.key, self.clock = "", 0.0
        self.sums: Tensor | None = None
        """Sums of the losses in nats since the last point of the curve, and of the seconds of speech."""
        self.weights: dict[str, Tensor] | None = None
        """Weights of the smallest loss or, at the end, the gathered weights of a sharded model."""

    @abstractmethod
    def measure(self) -> list[float]:
        """Sums over this process's part of the held-out data; the first is a loss in nats."""

    def valid_values(self, sums: list[float]) -> dict[str, float]:
        """The values of a validation from the sums over all processes."""
        return {"valid_loss": sums[0] / sums[1]}

    def note(self, divisor: float, *losses: Tensor, seconds: float = 0.0) -> None:
        """Record the losses of a batch, in the order of ``loss_names``; each times ``divisor`` is a sum in nats."""
        found = torch.stack([loss.detach().double() for loss in losses]) * divisor
        found = torch.cat([found, found.new_tensor([seconds])])
        self.sums = found if self.sums is None else self.sums.to(found.device) + found

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - Lightning's union
        """AdamW and its schedule of learning rates."""
        optimiser, steps = make_optimiser(self.model, self.settings), len(self.batches.steps)
        return scheduled(optimiser, lambda step: rate_factor(step, steps, self.settings.warmup_share))

    def configure_gradient_clipping(self, *_: object, **__: object) -> None:
        """Clip by norm; Lightning's own clipping refuses a fused optimiser."""
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_clip)

    def on_train_start(self) -> None:
        """Validate before the first step, or say where the training goes on."""
        if self.record.resumed_step is None:
            if self.valid is not None and self.validates_first:
                self._validate(0.0)
        elif self.batches.plan.is_first:
            steps = f"{self.record.resumed_step:,} of {len(self.batches.steps):,}"
            print(f"goes on from the checkpoint after step {steps}", file=sys.stderr)
            for point in self.record.curve:
                self._log(point)
        self.trainer.should_stop = self.record.stopped_early
        self.clock = time.perf_counter()

    def lr_scheduler_step(self, scheduler: Any, metric: object) -> None:  # noqa: ANN401 - as Lightning has it
        """After each optimiser step, before a checkpoint: count it, log it and validate where due."""
        record, settings, step = self.record, self.settings, self.batches.steps[self.record.steps]
        rate = scheduler.get_last_lr()[0]
        scheduler.step()
        record.steps += 1
        record.tokens += self.batches.targets(step)
        is_last, every = record.steps == len(self.batches.steps), settings.validate_every_steps
        is_logged = is_last or record.steps % self.log_every_steps == 0
        assert self.sums is not None, "training_step notes its losses"
        if is_logged or self.device.type != "cuda":  # reading a loss from a GPU waits for it
            remedy = f"learning_rate than {settings.learning_rate!r} or gradient_clip than {settings.gradient_clip!r}"
            self._refuse(float(self.sums[0]), f"training loss is not a number at step {record.steps}", remedy)
        record.train_seconds += time.perf_counter() - self.clock
        if is_logged:
            *sums, seconds = self._summed(self.sums)
            targets = max(1, record.tokens - record.logged_tokens)
            means = {name: total / targets for name, total in zip(self.loss_names, sums, strict=True)}
            self._add_point(means | {"learning_rate": rate})
            record.audio_seconds += seconds
            record.logged_tokens, self.sums = record.tokens, None
        if self.valid is not None and (is_last or (record.steps % every == 0 if every else step.ends_epoch)):
            self._validate(step.epochs_done)
        self.clock = time.perf_counter()

    @torch.no_grad()
    def _validate(self, epochs_done: float) -> None:
        record = self.record
        self.model.eval()
        with self.trainer.precision_plugin.forward_context():
            sums = self._summed(torch.tensor(self.measure(), dtype=torch.float64, device=self.device))
        self.model.train()
        self._refuse(sums[0], f"validation loss is not a number after step {record.steps}", "learning_rate")
        values = self.valid_values(sums)
        self._add_point({"epoch": epochs_done} | values)
        if self.patience and values["valid_loss"] < record.best_loss:
            record.best_loss, record.best_step, record.waited = values["valid_loss"], record.steps, 0
            self.weights = _whole_weights(self.model)
        elif self.patience:
            record.waited += 1
            record.stopped_early = record.waited >= self.patience and record.steps < len(self.batches.steps)
            self.trainer.should_stop = record.stopped_early

    def _summed(self, values: Tensor) -> list[float]:
        found: list[float] = self.trainer.strategy.reduce(values.clone(), reduce_op="sum").tolist()
        return found

    def _refuse(self, loss: float, reason: str, smaller: str) -> None:
        if not math.isfinite(loss):
            raise ModelError(f"the {reason} of {len(self.batches.steps)}; no model was saved. Give a smaller {smaller}")

    def _add_point(self, values: dict[str, float]) -> None:
        self.record.curve.append({"step": self.record.steps, **values})
        self._log(self.record.curve[-1])

    def _log(self, point: dict[str, float]) -> None:
        self.on_log(int(point["step"]), {k: v for k, v in point.items() if k not in ("step", "epoch")})

    def on_train_end(self) -> None:
        """Gather sharded weights while all processes still run."""
        if self.device_mesh is not None and self.weights is None:
            self.weights = _whole_weights(self.model)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the record, the sums since its last point, the best weights, and the generator of dropout."""
        sums = None if self.sums is None else torch.tensor(self._summed(self.sums), dtype=torch.float64)
        checkpoint["training"] = self.key, asdict(self.record), sums, self.weights, torch.get_rng_state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore what ``on_save_checkpoint`` added; of several processes, each draws new dropout."""
        (_, record, sums, self.weights, generator), plan = checkpoint["training"], self.batches.plan
        self.record = TrainingRecord(**record | {"resumed_step": record["steps"]})
        self.sums = sums if plan.is_first else None
        torch.manual_seed(_rank_seed(self.seed, plan.rank, self.record.steps))
        if plan.world_size == 1:
            torch.set_rng_state(generator)


class _Saves(ModelCheckpoint):
    """Saves after an optimiser step alone, since no checkpoint has the gradients of its parts."""

    def on_train_batch_end(self, trainer: Trainer, *rest: Any) -> None:  # noqa: ANN401 - as Lightning has it
        if rest[-1] % trainer.accumulate_grad_batches == trainer.accumulate_grad_batches - 1:
            super().on_train_batch_end(trainer, *rest)


def fit(module: Training, checkpoints: Checkpoints | None = None) -> TrainingRecord:
    """Train to the end; the model remains on its device. ``module.weights``, if any, are the result.

    Dropout depends on the seed alone, and the caller's generators do not change. All processes call this together.
    Raises ``ModelError`` where the loss is no longer finite or the checkpoint cannot be used.
    """
    plan, saves, begin_with = module.batches.plan, list[Callback](), None
    if checkpoints:
        begin_with, every, seconds = checkpoints.begin_with, checkpoints.every_steps, checkpoints.every_seconds
        module.key = checkpoints.key
        if begin_with and _key_of(begin_with) != module.key:
            of_another = "damaged, or of another vocabulary, architecture, text or order of batches"
            raise ModelError(f"checkpoint {begin_with!r} is missing, {of_another}; give --set resources.resume=false")
        if every or seconds:
            due = {"every_n_train_steps": every} if every else {"train_time_interval": timedelta(seconds=seconds)}
            folder, name = checkpoints.file.parent, checkpoints.file.stem
            saves = [_Saves(folder, name, enable_version_counter=False, **due)]
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(_rank_seed(module.seed, plan.rank))
        precision = "bf16-mixed" if module.arithmetic == torch.bfloat16 else "32-true"
        options = {"accumulate_grad_batches": module.batches.accumulate, "precision": precision}
        run_trainer(module, module.batches, begin_with, saves, **options, **plan.devices_of_trainer())
    return module.record


def _key_of(checkpoint: str) -> str | None:
    try:
        key: str = torch.load(checkpoint, map_location="meta", weights_only=True, mmap=True)["training"][0]
        return key
    except Exception:
        return None


def _whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all weights, on the processor; all processes call this together."""
    from torch.distributed.tensor import DTensor

    whole = ((name, w.full_tensor() if isinstance(w, DTensor) else w) for name, w in model.named_parameters())
    return {name: weight.detach().cpu().clone() for name, weight in whole}


def _rank_seed(seed: int, rank: int, step: int = 0) -> int:
    """Seed of a process's dropout: the first one starts with the seed itself, all others with derived seeds."""
    derived = np.random.SeedSequence([seed, rank, step]).generate_state(1)
    return int(derived[0]) if rank or step else seed
