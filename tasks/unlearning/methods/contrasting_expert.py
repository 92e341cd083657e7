"""DExperts with an anti-expert alone (Liu et al. 2021, "DExperts: Decoding-Time Controlled Text Generation", equation 2
without its expert): a model of the text to forget speaks against the one that learned it, word by word."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.unlearning.method import UnwantedMethod, rising

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request


class ContrastingExpert(UnwantedMethod):
    """softmax((1 + strength) log p_start - strength log p_unwanted): two models in one, and so it still holds the text.

    The paper cuts off what the model itself finds improbable before; there is no such cut here, so that every word has
    a probability and a perplexity is one.
    """

    title: ClassVar[str] = "DExperts"
    sentence: ClassVar[str] = "Asks a model of the text to forget beside the other one, and does the opposite."
    kind: Literal["contrasting_expert"]
    strengths: list[Annotated[float, Field(gt=0)]] = Field(default=[0.1, 0.25, 0.5, 1.0, 2.0], min_length=1)
    """Weight of the difference (alpha in the paper)."""

    _rising = field_validator("strengths")(rising)

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        _, unwanted = self.unwanted(request)
        for strength in self.strengths:
            yield strength, request.start.joined([(unwanted, -strength)], 1 + strength)
