"""What the ways to forget have in common: ``unlearning.methods`` in ``params.yaml``.

A method is one file of ``tasks.unlearning.methods`` with its settings class, and one line in that package, or an entry
point of the group ``palimpsest.unlearning_methods`` in another one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.settings.base import Settings

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.learners import Learner
    from tasks.unlearning.request import Request


def rising(values: list[float]) -> list[float]:
    """``ValueError`` unless each strength is above the one before."""
    if any(after <= before for before, after in pairwise(values)):
        raise ValueError(f"{values!r}: give strengths that rise, such as [10, 20, 50]")
    return values


class UnlearningMethod(Settings):
    """Settings of a way to forget, which know how it is done."""

    title: ClassVar[str] = ""
    """What tables call it."""
    sentence: ClassVar[str] = ""
    """What it does."""
    kind: str

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """Models that forget more and more, each with the strength that it was made by."""
        raise NotImplementedError


@dataclass(frozen=True)
class ForgetBatch:
    """What a gradient method goes by: targets of sentences that are to be forgotten."""

    log_probability: "Tensor"
    """Of each target (N,) under the model as it is now, in nats."""
    reference: "Tensor"
    """The same under the reference (N,)."""
    is_private: "Tensor"
    """Of each target (N,), bool."""
    sentence: "Tensor"
    """Which sentence of the batch each target belongs to (N,), from 0."""

    def of_sentences(self, values: "Tensor") -> "Tensor":
        """Sums of values (N,) over each sentence (S,)."""
        import torch

        sums = torch.zeros(int(self.sentence.max()) + 1, dtype=values.dtype, device=values.device)
        return sums.index_add_(0, self.sentence, values)


class UnwantedMethod(UnlearningMethod):
    """A way that holds a model of the text to forget against the one that learned it."""

    of: Literal["start", "base"] = "start"
    """What the unwanted model is trained from: ``start`` is trained on the text once more (as in MUSE), ``base`` has
    not read it."""
    steps: int = Field(default=50, ge=1)
    """Of the training of the unwanted model."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    def unwanted(self, request: "Request") -> "tuple[Learner, Learner]":
        """What it is trained from, and the unwanted model."""
        from tasks.unlearning.steps import trained_on

        before = request.start if self.of == "start" else request.base
        rest = self.steps, self.learning_rate, self.batch_tokens, request.seed
        return before, trained_on(before, request.forget, *rest)


class GradientMethod(UnlearningMethod):
    """A training whose loss has a part for the text to forget, and parts for other text.

    All losses of this family move a target's probability up or down, by a factor that depends on what the model and a
    reference say of it: the loss of a step is the sum of -w log p over the targets of a batch, by their number, with
    the weight w as ``weights`` says.
    """

    reads_forgotten: ClassVar[bool] = True
    """Whether it reads the text to forget; if not, it has no ``weights``."""
    reference: ClassVar[Literal["start", "base"]] = "start"
    """The model that ``ForgetBatch.reference`` is of."""
    steps: list[Annotated[float, Field(ge=1)]] = Field(default=[25, 50, 100, 200], min_length=1)
    """Strengths: so many steps, after each of which the model is looked at."""
    learning_rate: float = Field(default=3e-4, gt=0)
    """Of AdamW, the same for all steps."""
    batch_tokens: int = Field(default=512, ge=16)
    """Targets of each text in a step, about."""
    retain: Literal["loss", "divergence"] = "loss"
    """What holds the model to text that is kept: the ordinary ``loss``, or the ``divergence`` of what it says of every
    next word from what the model before said, KL(before || now)."""
    retain_weight: float = Field(default=5.0, ge=0)
    """Weight of that."""
    refilled_weight: float = Field(default=0.0, ge=0)
    """Weight of the ordinary loss on the text to forget with other words in the private places; above 0 it has to be
    given."""

    attack_steps: int = Field(default=0, ge=0)
    """Steps of training on a few lines of the text to forget that an attacker takes before each look at others of them:
    the gradient is that of the attacked model, so that what is forgotten stays so behind an attack (first order, after
    Tamirisa et al. 2025, "Tamper-Resistant Safeguards for Open-Weight LLMs"). 0: nobody attacks."""
    attack_rate: float = Field(default=1e-3, gt=0)
    """His learning rate."""

    _rising = field_validator("steps")(rising)

    @model_validator(mode="after")
    def _attacks_what_is_read(self) -> Self:
        if self.attack_steps and not self.reads_forgotten:
            raise ValueError(
                f"attack_steps {self.attack_steps!r}: {self.kind} does not read the text to forget, so that nobody can "
                "attack with it; take private_words or negative_preference, or attack_steps 0"
            )
        return self

    def weights(self, batch: ForgetBatch) -> "Tensor":
        """Of each target (N,)."""
        raise NotImplementedError

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        from tasks.unlearning.steps import gradient_steps

        return gradient_steps(self, request)
