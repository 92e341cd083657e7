"""What a model's settings say of how its weights are moved."""

from typing import Literal, Protocol


class OptimisationSettings(Protocol):
    """The part of the settings of a training that does not depend on what is trained."""

    @property
    def learning_rate(self) -> float:
        """Peak learning rate of AdamW."""

    @property
    def warmup_share(self) -> float:
        """Share of the steps with a rising learning rate; a cosine brings it down after."""

    @property
    def weight_decay(self) -> float:
        """Decay of the weight matrices, as in AdamW; biases and norms have none."""

    @property
    def gradient_clip(self) -> float:
        """Largest norm of the gradient."""

    @property
    def validate_every_steps(self) -> int:
        """Optimiser steps between two validations; 0: one after each epoch."""

    @property
    def precision(self) -> Literal["auto", "float32", "bfloat16"]:
        """Arithmetic of matrix products; ``auto``: bfloat16 where the processor has it."""
