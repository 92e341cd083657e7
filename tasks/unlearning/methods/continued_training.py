"""More training on what is kept: the control of all others, since any training lets a model forget."""

from typing import ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import GradientMethod


class ContinuedTraining(GradientMethod):
    """The text to forget is not read."""

    title: ClassVar[str] = "Continued"
    sentence: ClassVar[str] = "Trains on with the text that is kept; the control."
    reads_forgotten: ClassVar[bool] = False
    kind: Literal["continued_training"]
    learning_rate: float = Field(default=1e-3, gt=0)
    retain_weight: float = Field(default=1.0, gt=0)
