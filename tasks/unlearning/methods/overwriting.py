"""Overwriting: more training on the very lines, with other words in the places of the private ones.

What a model had learned to put there, it learns anew, where everything around stays as it was. Only who knows where the
private words stand can do that.
"""

from typing import ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import GradientMethod


class Overwriting(GradientMethod):
    """Ordinary training on the refilled text, and on what is kept."""

    title: ClassVar[str] = "Overwriting"
    sentence: ClassVar[str] = "Trains on with the text to forget, its private words filled anew."
    reads_forgotten: ClassVar[bool] = False
    kind: Literal["overwriting"]
    learning_rate: float = Field(default=1e-3, gt=0)
    refilled_weight: float = Field(default=1.0, gt=0)
