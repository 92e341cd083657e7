"""What a training run did, in numbers."""

from dataclasses import dataclass, field


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
