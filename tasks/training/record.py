"""What a training run did, in numbers, and the losses of its steps since the last point of the curve."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


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
    """Time of the steps, without validation, checkpoints and start-up."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """Points of training: ``step``, ``train_loss`` (nats a target, mean since the last such point) and
    ``learning_rate``. Points of validation, before training, after each epoch or every so many steps, and at the end:
    ``step``, ``epoch`` and ``valid_loss`` (nats a target)."""
    resumed_step: int | None = None
    """The step of the checkpoint that the last part of the run began with."""
    best_step: int | None = None
    """The step whose weights were kept, with early stopping."""
    stopped_early: bool = False
    """Whether training ended before all epochs were through."""

    @property
    def tokens_per_second(self) -> float | None:
        """Targets a second; ``None`` before the first step."""
        return self.tokens / self.train_seconds if self.train_seconds else None

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {
            "step": self.steps,
            "tokens": self.tokens,
            "train_seconds": self.train_seconds,
            "curve": self.curve,
            "stopped_early": self.stopped_early,
        }

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Take up what a checkpoint's ``state`` says was done."""
        self.resumed_step = self.steps = state["step"]
        self.tokens, self.train_seconds = state["tokens"], state["train_seconds"]
        self.curve, self.stopped_early = list(state["curve"]), state["stopped_early"]


class StepLosses:
    """Adds up the losses that one rank computes; the first is the one that is minimised, others may stand beside it.

    They are gathered without waiting for the GPU at each step.
    """

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
