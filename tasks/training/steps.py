"""Lightning's ``Trainer``, and models of Hugging Face, with or without peft, that take a fixed number of steps."""

import logging
import math
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from tasks.errors import ModelError
from tasks.threads import is_first_process


def run_trainer(
    module: LightningModule, batches: Any, begin_with: str | None = None, saves: Sequence[Callback] = (), **options: Any  # noqa: ANN401
) -> None:  # fmt: skip
    """Train on all batches once; ``SystemExit`` with 143 after SIGTERM, which ends the training after a step."""
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(package).setLevel(logging.ERROR)
    bar = [TQDMProgressBar()] if sys.stdout.isatty() and is_first_process() else []
    options |= {"callbacks": [*saves, *bar], "enable_checkpointing": bool(saves), "enable_progress_bar": bool(bar)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        try:
            trainer = Trainer(max_epochs=1, logger=False, enable_model_summary=False, **options)
            trainer.fit(module, batches, ckpt_path=begin_with, weights_only=True)
        except SIGTERMException:
            raise SystemExit(128 + signal.SIGTERM) from None
        except SystemExit as ended:  # Lightning exits with 1 after Ctrl-C
            raise KeyboardInterrupt from ended


def scheduled(optimiser: Optimizer, factor: Callable[[int], float]) -> dict[str, Any]:
    """The optimiser and its schedule of rates, for Lightning."""
    schedule = LambdaLR(optimiser, factor)
    return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Steps(LightningModule):
    """A model of Hugging Face, with or without peft, that is trained for a fixed number of steps in one process.

    ``next_loss`` makes the next batch and returns its loss. The optimiser's groups have their peak rates; ``factor``
    returns the share of the peak at a step (from 0). ``after_step`` gets the number of each step, from 1, and its loss.
    """

    def __init__(
        self, optimiser: Optimizer, next_loss: Callable[[], Tensor], factor: Callable[[int], float], remedy: str,
        after_step: Callable[[int, float], None] = lambda step, loss: None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.optimiser, self.next_loss, self.factor = optimiser, next_loss, factor
        self.remedy, self.after_step, self.losses = remedy, after_step, list[float]()

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
        return scheduled(self.optimiser, self.factor)

    def run(self, steps: int, largest_gradient: float = 1.0) -> list[float]:
        """Take all steps; returns their losses."""
        device = self.optimiser.param_groups[0]["params"][0].device.type
        run_trainer(self, range(steps), devices=1, accelerator=device, gradient_clip_val=largest_gradient)
        return self.losses


def linear(steps: int, warm_up_share: float) -> Callable[[int], float]:
    """The share of the peak rate as a function of the step (from 0): linear up to 1, then linear down to 0."""
    warm_up = max(1, round(warm_up_share * steps))
    return lambda step: (step + 1) / warm_up if step < warm_up else (steps - step) / max(1, steps - warm_up)
