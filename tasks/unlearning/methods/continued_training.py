"""Further training on the text to retain: the control of all others, since any training lets a model forget."""

from typing import ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import GradientMethod


class ContinuedTraining(GradientMethod):
    """Further training that does not read the text to forget."""

    title: ClassVar[str] = "Continued"
    sentence: ClassVar[str] = "Trains further on the text to retain; the control."
    kind: Literal["continued_training"]
    learning_rate: float = Field(default=1e-3, gt=0)
    retain_weight: float = Field(default=1.0, gt=0)
