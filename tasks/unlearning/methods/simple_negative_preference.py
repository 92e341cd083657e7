"""Simple negative preference optimisation (Fan et al. 2024, "Simplicity Prevails: Rethinking Negative Preference
Optimization for LLM Unlearning", equation 4): without a reference, by the mean over a sentence's targets."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import ForgetBatch, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class SimpleNegativePreference(GradientMethod):
    """-(2 / beta) log sigmoid(-(beta / n) log p - gamma) of each sentence of n targets, a mean over sentences."""

    title: ClassVar[str] = "SimNPO"
    sentence: ClassVar[str] = "The same without a reference, by the mean over a sentence's words."
    kind: Literal["simple_negative_preference"]
    beta: float = Field(default=2.5, gt=0)
    gamma: float = 0.0

    def weights(self, batch: ForgetBatch) -> "Tensor":
        """The same for all targets of a sentence."""
        import torch

        targets = batch.of_sentences(torch.ones_like(batch.log_probability))  # (S,)
        mean = batch.of_sentences(batch.log_probability) / targets
        # By targets, as a step divides, times targets by sentences: a mean over sentences.
        scale = len(batch.log_probability) / len(targets)
        return (-2 * scale * torch.sigmoid(self.beta * mean + self.gamma) / targets)[batch.sentence]
