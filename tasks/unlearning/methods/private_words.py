"""Private words alone: each is made as improbable as it was before the private text, and no more than that.

The loss of a private word w is max(0, log p(w) - log p_base(w) + margin), a hinge: what is as surprising as to the
model before adaptation, and a little more, stays as it is, so that nothing is pushed to where its absence would tell.
Only who knows where the private words stand can do that.
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import ForgetBatch, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class PrivateWords(GradientMethod):
    """A hinge on private words."""

    title: ClassVar[str] = "Private words"
    sentence: ClassVar[str] = "Makes the private words alone as improbable as they were before."
    reference: ClassVar[Literal["start", "base"]] = "base"
    kind: Literal["private_words"]
    forget_weight: float = Field(default=1.0, gt=0)
    """Weight of the hinge."""
    margin: float = Field(default=2.0, ge=0)
    """Nats by which a private word may be less probable than before the private text: sentences that nobody was trained
    on become so too, and a word that stays behind them is told by that."""
    other_weight: float = Field(default=0.0, ge=0)
    """Weight of the ordinary loss on the other words of the line: above 0 the line itself is remembered better."""

    def weights(self, batch: ForgetBatch) -> "Tensor":
        """For a private word below 0, or 0 where it is improbable enough."""
        import torch

        hinge = -self.forget_weight * (batch.log_probability > batch.reference - self.margin).to(batch.log_probability)
        return torch.where(batch.is_private, hinge, self.other_weight)
