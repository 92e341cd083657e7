"""Training of models of Hugging Face, with or without peft, for a fixed number of steps; and Lightning's options."""

import logging
import math
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor

from tasks.errors import ModelError


def fit_once(
    module: LightningModule,
    batches: Iterable[Any],
    *,
    callbacks: Sequence[Callback] = (),
    has_bar: bool | None = None,
    begin_with: Any = None,  # noqa: ANN401 - a path, as Lightning takes it
    **options: Any,  # noqa: ANN401 - of Trainer
) -> None:
    """Train on all batches once, without a logger; ``begin_with`` is a checkpoint to resume from.

    ``has_bar`` defaults to whether standard output is a terminal. Raises ``SystemExit`` with 143 after SIGTERM.
    """
    has_bar = sys.stdout.isatty() if has_bar is None else has_bar
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        trainer = Trainer(
            max_epochs=1,
            limit_val_batches=0,
            callbacks=[*callbacks, *([TQDMProgressBar()] if has_bar else [])],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=has_bar,
            enable_model_summary=False,
            use_distributed_sampler=False,
            **{"devices": 1, **options},
        )
        try:
            trainer.fit(module, train_dataloaders=batches, ckpt_path=begin_with, weights_only=True)
        except SIGTERMException:
            raise SystemExit(128 + signal.SIGTERM) from None
        except SystemExit as ended:  # Lightning exits with 1
            if isinstance(ended.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise


class Steps(LightningModule):
    """A training of a fixed number of steps in one process, without checkpoints.

    ``next_loss`` makes the next batch and returns its loss. The optimiser's groups have their peak rates;
    ``factor`` returns the share of the peak at a step (from 0).
    """

    def __init__(
        self,
        optimiser: torch.optim.Optimizer,
        next_loss: Callable[[], Tensor],
        factor: Callable[[int], float],
        *,
        remedy: str,
        largest_gradient: float = 1.0,
        after_step: Callable[[int, float], None] = lambda step, loss: None,
    ) -> None:
        """``after_step`` gets the number of each step, from 1, and its loss."""
        super().__init__()
        self.optimiser, self.next_loss, self.factor = optimiser, next_loss, factor
        self.remedy, self.largest_gradient, self.after_step = remedy, largest_gradient, after_step
        self.losses: list[float] = []

    def training_step(self, batch: int, batch_idx: int) -> Tensor:
        """The loss of the next batch; raises ``ModelError`` with the remedy if it is not finite."""
        loss = self.next_loss()
        self.losses.append(loss.item())
        if not math.isfinite(self.losses[-1]):
            raise ModelError(f"the training loss is not a number at step {batch + 1}; {self.remedy}")
        return loss

    def on_train_batch_end(self, outputs: object, batch: int, batch_idx: int) -> None:
        """Call ``after_step``."""
        self.after_step(batch + 1, self.losses[-1])

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - Lightning's union
        """The optimiser and its schedule of rates."""
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, self.factor)
        return {"optimizer": self.optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(self, optimizer: torch.optim.Optimizer, *_: object, **__: object) -> None:
        """Clip by norm; Lightning's own clipping refuses a fused optimiser."""
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        torch.nn.utils.clip_grad_norm_(weights, self.largest_gradient)

    def run(self, steps: int) -> list[float]:
        """Take all steps; returns their losses."""
        weight = self.optimiser.param_groups[0]["params"][0]
        fit_once(self, range(steps), accelerator="gpu" if weight.is_cuda else "cpu")
        return self.losses


def linear(steps: int, warm_up_share: float) -> Callable[[int], float]:
    """The share of the peak rate as a function of the step (from 0): linear up to 1, then linear down to 0."""
    warm_up = max(1, round(warm_up_share * steps))
    return lambda step: (step + 1) / warm_up if step < warm_up else (steps - step) / max(1, steps - warm_up)
