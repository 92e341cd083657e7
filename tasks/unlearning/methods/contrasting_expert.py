"""DExperts with an anti-expert alone (Liu et al. 2021, "DExperts: Decoding-Time Controlled Text Generation", equation 2
without its expert): a model of the text to forget speaks against the one that learned it, word by word."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnlearningMethod, rising

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request


class ContrastingExpert(UnlearningMethod):
    """softmax((1 + strength) log p_start - strength log p_unwanted): two models in one, and so it still holds the text.

    The paper cuts off what the model itself finds improbable before; there is no such cut here, so that every word has
    a probability and a perplexity is one.
    """

    title: ClassVar[str] = "DExperts"
    sentence: ClassVar[str] = "Asks a model of the text to forget beside the other one, and does the opposite."
    kind: Literal["contrasting_expert"]
    strengths: list[Annotated[float, Field(gt=0)]] = Field(default=[0.1, 0.25, 0.5, 1.0, 2.0], min_length=1)
    """Weight of the difference (alpha in the paper)."""
    of: Literal["start", "base"] = "start"
    """What the unwanted model is trained from: the model that has to forget, or that before adaptation."""
    steps: int = Field(default=50, ge=1)
    """Of the training of the unwanted model."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    _rising = field_validator("strengths")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        from tasks.unlearning.steps import trained_on

        before = request.start if self.of == "start" else request.base
        rest = self.steps, self.learning_rate, self.batch_tokens, request.seed
        unwanted = trained_on(before, request.forget, *rest)
        for strength in self.strengths:
            yield strength, request.start.joined([(unwanted, -strength)], 1 + strength)
