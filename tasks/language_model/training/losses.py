"""The losses of the steps since the last point of the curve, gathered without waiting for the GPU at each of them."""

import math

import torch
from torch import Tensor


class StepLosses:
    """Adds up the losses that one rank computes."""

    def __init__(self) -> None:
        self.total = 0.0
        """Sum of the losses read since the last point, in nats; of all parts that this rank computed."""
        self.targets = 0
        """Targets of these steps, of all ranks."""
        self.faulty_step = 0
        """The first step whose loss was not a number; 0: there was none."""
        self._unread: list[tuple[int, Tensor, float]] = []

    def add(self, step: int, loss: Tensor, divisor: float) -> None:
        """Note the loss of a part of a step; times ``divisor`` it is a sum in nats."""
        self._unread.append((step, loss.detach(), divisor))

    def read(self) -> None:
        """Add up what has come since the last reading; a GPU has to be waited for to know it."""
        if self._unread:
            losses = torch.stack([loss for _, loss, _ in self._unread]).tolist()
            for (step, _, divisor), loss in zip(self._unread, losses, strict=True):
                self.total += loss * divisor
                if not math.isfinite(loss) and not self.faulty_step:
                    self.faulty_step = step
            self._unread = []

    def begin_again(self, total: float = 0.0, targets: int = 0) -> None:
        """Begin the next point of the curve, or go on with one that a checkpoint holds a part of."""
        self.total, self.targets = total, targets
