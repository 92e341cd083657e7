"""Base classes of unlearning methods: ``unlearning.methods`` in ``params.yaml``.

A method is one file of ``tasks.unlearning.methods`` with its settings class, and one line in that package. In another
package it is an entry point of the group ``palimpsest.unlearning_methods``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from tasks.settings.base import Settings

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner, MarkedText


@dataclass(frozen=True)
class Request:
    """A model, the text to forget and the text to retain."""

    start: "Learner"
    """Model that was trained on both texts; it is not changed."""
    base: "Learner"
    """Model that ``start`` was adapted from; it has seen neither text."""
    forget: "MarkedText"
    retain: "MarkedText"
    """Other training text of ``start``, which it may know."""
    refilled: "MarkedText | None"
    """The text to forget with other words in the private places, in one copy or several."""
    seed: int


def _rising(values: list[float]) -> list[float]:
    if any(after <= before for before, after in pairwise(values)):
        raise ValueError(f"{values!r}: give strengths that rise, such as [10, 20, 50]")
    return values


Strengths = Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1), AfterValidator(_rising)]
"""Strengths to try, each above the one before."""
Steps = Annotated[list[Annotated[float, Field(ge=1)]], Field(min_length=1), AfterValidator(_rising)]
"""Strengths that are numbers of training steps; the model is measured after each."""


class UnlearningMethod(Settings):
    """Settings of an unlearning method, which also carry it out."""

    title: ClassVar[str] = ""
    """Name of the method in tables."""
    sentence: ClassVar[str] = ""
    """One sentence on the method, for the help."""
    kind: str

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """Models that forget more and more, each with its strength."""
        raise NotImplementedError


class LearningMethod(UnlearningMethod):
    """Base of methods that learn from the text to forget once, and apply what was learned more and more."""

    steps: int = Field(default=50, ge=1)
    """Number of training steps on the text to forget."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)


class UnwantedMethod(LearningMethod):
    """Base of methods that compare the model with an unwanted one, trained again on the text to forget."""

    def unwanted(self, request: Request) -> "Learner":
        """Train and return the unwanted model."""
        from tasks.unlearning.steps import trained_on

        rest = self.steps, self.learning_rate, self.batch_tokens, request.seed
        return trained_on(request.start, request.forget, *rest)


class GradientMethod(UnlearningMethod):
    """Base of methods that train further, with losses on the text to retain and on the refilled text."""

    steps: Steps = Field(default=[25, 50, 100, 200])
    learning_rate: float = Field(default=3e-4, gt=0)
    """Learning rate of AdamW, the same for all steps."""
    batch_tokens: int = Field(default=512, ge=16)
    """Approximate number of targets of each text in a step."""
    retain: Literal["loss", "divergence"] = "loss"
    """Loss on the text to retain: the ordinary ``loss``, or the ``divergence`` from the next-word distributions of the
    model before, KL(before || now)."""
    retain_weight: float = Field(default=5.0, ge=0)
    """Weight of the loss on the text to retain."""
    refilled_weight: float = Field(default=0.0, ge=0)
    """Weight of the ordinary loss on the text to forget with other words in the private places; above 0 that text is
    required."""

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        from tasks.unlearning.steps import gradient_steps

        return gradient_steps(self, request)
