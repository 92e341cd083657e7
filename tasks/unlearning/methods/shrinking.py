"""Shrinking and repair, after UNDO (Lee et al. 2025, "Distillation Robustifies Unlearning").

Weights that are only trained away from a text come back to it in a few steps. UNDO adds noise to the weights of a model
that has forgotten and distils its outputs into what is left. Here the model before adaptation is at hand, which never
read the text: each weight goes a share of the way back to it, and what was lost is learned again from text that is
kept, by what the model before said of every next word, and from the refilled text.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnlearningMethod, rising

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request


class Shrinking(UnlearningMethod):
    """start + share (base - start), trained on; at a share of 1 it is retraining by distillation."""

    title: ClassVar[str] = "Shrinking"
    sentence: ClassVar[str] = (
        "Takes weights back towards the model before adaptation, and repairs with text that is kept."
    )
    kind: Literal["shrinking"]
    shares: list[Annotated[float, Field(gt=0, le=1)]] = Field(default=[0.25, 0.5, 0.75, 1.0], min_length=1)
    """Strengths: so far back."""
    steps: int = Field(default=100, ge=1)
    """Of the repair, of each share."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)
    refilled_weight: float = Field(default=0.3, ge=0)
    """Weight of the ordinary loss on the text to forget with other words in the private places, beside the divergence
    from the model before on text that is kept; 0 does without that text."""

    _rising = field_validator("shares")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        import torch

        base = dict(request.base.network.named_parameters())
        for share in self.shares:
            model = request.start.copy()
            with torch.no_grad():
                for name, weights in model.network.named_parameters():
                    weights.lerp_(base[name], share)
            self._repair(model, request)
            yield share, model

    def _repair(self, model: "Learner", request: "Request") -> None:
        from tasks.unlearning.steps import divergence_from, drawn_batches, mean_loss, refilled_text, trained_steps

        texts = request.retain, refilled_text(self.kind, self.refilled_weight, request)
        retain, refilled = drawn_batches(model, texts, self.batch_tokens, request.seed)
        kept = divergence_from(request.start)

        def losses() -> "Iterator[Tensor]":
            yield kept(model, next(retain).batch)
            if self.refilled_weight:
                yield self.refilled_weight * mean_loss(model, next(refilled).batch)

        for _ in trained_steps(model, losses, self.learning_rate, self.steps):
            pass
