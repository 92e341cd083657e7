"""Negative preference optimisation (Zhang et al. 2024, "Negative Preference Optimization: From Catastrophic Collapse to
Effective Unlearning", equation 3)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import ForgetBatch, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class NegativePreference(GradientMethod):
    """-(2 / beta) log sigmoid(-beta log(p / p_start)) of each sentence: gradient ascent that ends by itself.

    Its gradient is that of log p times 2 sigmoid(beta log(p / p_start)), which is 1 at the first step. Sums over
    sentences are divided by the targets of the batch, as the loss on kept text is: the paper divides by sentences, and
    kept text then weighs next to nothing.
    """

    title: ClassVar[str] = "NPO"
    sentence: ClassVar[str] = "Gradient ascent on the text to forget that ends by itself."
    kind: Literal["negative_preference"]
    beta: float = Field(default=0.1, gt=0)
    """How soon the ascent ends; towards 0 it is gradient ascent."""

    def weights(self, batch: ForgetBatch) -> "Tensor":
        """The same for all targets of a sentence."""
        import torch

        ratio = batch.of_sentences(batch.log_probability - batch.reference)  # (S,)
        return -2 * torch.sigmoid(self.beta * ratio)[batch.sentence]
