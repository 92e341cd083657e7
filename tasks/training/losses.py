"""The losses of the steps since the last point of the curve, gathered without waiting for the GPU at each of them."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class StepLosses:
    """Adds up the losses that one rank computes; the first is the one that is minimised, others may stand beside it."""

    def __init__(self, names: Sequence[str] = ("train_loss",)) -> None:
        """``names`` as the curve has them."""
        self.totals = dict.fromkeys(names, 0.0)
        """Sums of the losses read since the last point, in nats; of all parts that this rank computed."""
        self.targets = 0
        """Targets of these steps, of all ranks."""
        self.faulty_step = 0
        """The first step whose first loss was not a number; 0: there was none."""
        self._unread: list[tuple[int, tuple[Tensor, ...], float]] = []

    def add(self, step: int, *losses: Tensor, divisor: float) -> None:
        """Note the losses of a part of a step, in the order of their names; times ``divisor`` each is a sum in nats."""
        self._unread.append((step, tuple(loss.detach() for loss in losses), divisor))

    def read(self) -> None:
        """Add up what has come since the last reading; a GPU has to be waited for to know it."""
        if self._unread:
            values = iter(torch.stack([loss for _, losses, _ in self._unread for loss in losses]).tolist())
            for step, _, divisor in self._unread:
                losses = {name: next(values) for name in self.totals}
                for name, loss in losses.items():
                    self.totals[name] += loss * divisor
                if not math.isfinite(next(iter(losses.values()))) and not self.faulty_step:
                    self.faulty_step = step
            self._unread = []

    def begin_again(self, totals: Sequence[float] = (), targets: int = 0) -> None:
        """Begin the next point of the curve, or go on with one that a checkpoint holds a part of."""
        self.totals = dict.fromkeys(self.totals, 0.0) | dict(zip(self.totals, totals, strict=False))
        self.targets = targets
