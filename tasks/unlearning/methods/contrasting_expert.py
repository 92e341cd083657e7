"""DExperts with an anti-expert alone (Liu et al. 2021, "DExperts: Decoding-Time Controlled Text Generation", equation 2
without its expert): at every word, a model of the text to forget is subtracted."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import Request, Strengths, UnwantedMethod

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner


class ContrastingExpert(UnwantedMethod):
    """softmax((1 + strength) log p_start - strength log p_unwanted): two models in one, so it still contains the text.

    The paper first removes words that the model itself finds improbable. There is no such cut here, so that every word
    has a probability and perplexity is defined.
    """

    title: ClassVar[str] = "DExperts"
    sentence: ClassVar[str] = "Lowers words that a model of the text to forget finds more probable."
    kind: Literal["contrasting_expert"]
    strengths: Strengths = Field(default=[0.1, 0.25, 0.5, 1.0, 2.0])
    """Weight of the difference (alpha in the paper)."""

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        unwanted = self.unwanted(request)
        for strength in self.strengths:
            yield strength, request.start.joined([(unwanted, -strength)], 1 + strength)
