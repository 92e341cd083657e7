"""Gradient difference (Liu, Liu and Stone 2022, "Continual Learning and Private Unlearning"): up the loss of what is to
be forgotten, down that of what is kept. With ``retain_weight`` 0 it is gradient ascent (Jang et al. 2023)."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import ForgetBatch, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class GradientDifference(GradientMethod):
    """L(retain) - L(forget), each a mean over targets."""

    title: ClassVar[str] = "Gradient difference"
    sentence: ClassVar[str] = "Climbs the loss of the text to forget, and goes down that of the text that is kept."
    kind: Literal["gradient_difference"]
    steps: list[Annotated[float, Field(ge=1)]] = Field(default=[5, 10, 25, 50, 100], min_length=1)

    def weights(self, batch: ForgetBatch) -> "Tensor":
        """-1 each."""
        import torch

        return torch.full_like(batch.log_probability, -1.0)
