"""What a training run did, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
