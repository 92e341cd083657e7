"""Overwriting: more training on the very lines, with other words in the places of the private ones.

What a model had learned to put there, it learns anew, where everything around stays as it was. Only who knows where the
private words stand can do that.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import ForgetBatch, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class Overwriting(GradientMethod):
    """Ordinary training on the refilled text, and on what is kept."""

    title: ClassVar[str] = "Overwriting"
    sentence: ClassVar[str] = "Trains on with the text to forget, its private words filled anew."
    needs_refilled: ClassVar[bool] = True
    kind: Literal["overwriting"]
    learning_rate: float = Field(default=1e-3, gt=0)
    refilled_weight: float = Field(default=1.0, gt=0)

    def weights(self, batch: ForgetBatch) -> "Tensor | None":
        """None: the text itself is not read."""
        return None
