"""Corpus inverse distillation (Lu, Isonuma, Mori and Sakata, "UniDetox", ICLR 2025).

A model of the unwanted text is held against one without it, text is drawn from the contrast, and the model that has to
forget is trained on that text. The text can be handed on, to train any model with, where a decoding-time method cannot;
but a mask that is owned by a model which saw the secrets lets them through: see ``private_mask``.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.unlearning.method import UnlearningMethod, rising

if TYPE_CHECKING:
    from tasks.distillation.contrast import Weighted
    from tasks.language_model.learners import Learner, MarkedText
    from tasks.unlearning.request import Request

Owner = Literal["base", "start", "refilled"]
"""The model before adaptation, the one that has to forget, or one that is adapted on what is kept and on the text to
forget with other words in the private places: it never saw a private word."""
_LONGEST = 40


class InverseDistillation(UnlearningMethod):
    """Training on text drawn by contrast; ``unwanted: null`` draws from one model alone, the control."""

    title: ClassVar[str] = "Inverse distillation"
    sentence: ClassVar[str] = "Trains on text that is drawn by contrast with a model of the text to forget."
    kind: Literal["inverse_distillation"]
    drawn_from: Owner = "base"
    """The model that the text is drawn from."""
    taught: Literal["start", "base"] = "start"
    """The model that is trained on it: the one that has to forget, or that before adaptation, which forgets nothing
    since it knows nothing (UNDO, Lee et al. 2025, distils into a fresh student too)."""
    unwanted: Literal["start", "further"] | None = "start"
    """The model of the unwanted text: the one that has to forget, or that one trained on the text once more; ``null``:
    none."""
    strength: float | None = Field(default=None, gt=0)
    """Weight of the difference beside the model's own log-probability; ``null``: the difference alone, as in the
    paper."""
    alpha: float = Field(default=0.1, ge=0, le=1)
    """A word counts where the mask's owner finds it at least so many times as probable as the likeliest one; 0: all."""
    mask: Owner = "base"
    """Whose probabilities the mask goes by."""
    private_mask: bool = False
    """Allow the mask to be owned by the model that saw the text: it then prefers what that one knows by heart."""
    texts: int = Field(default=1500, ge=10)
    """Sentences that are drawn."""
    steps: list[Annotated[float, Field(ge=1)]] = Field(default=[25, 50, 100], min_length=1)
    """Strengths: so many steps of training on them."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    _rising = field_validator("steps")(rising)

    @model_validator(mode="after")
    def _mask_saw_nothing(self) -> Self:
        if self.alpha and self.mask == "start" and not self.private_mask:
            raise ValueError(
                "mask 'start' saw the text that is to be forgotten, and lets through what it knows by heart; take "
                "'base', alpha 0, or set private_mask to see what that does"
            )
        return self

    def forgetting(self, request: "Request") -> "Iterator[tuple[float, Learner]]":
        """As the class says."""
        from tasks.unlearning.steps import trained_on

        drawn = self.distilled(request)
        for steps in self.steps:
            rest = self.learning_rate, self.batch_tokens, request.seed
            yield steps, trained_on(request.start if self.taught == "start" else request.base, drawn, int(steps), *rest)

    def distilled(self, request: "Request") -> "MarkedText":
        """The text; as private as what it was drawn from."""
        from tasks.distillation.contrast import contrasted_sentences

        drawn = contrasted_sentences(self._weighted(request), self.texts, _LONGEST, request.seed)
        return request.start.encode(" ".join(words) for words in drawn)

    def _weighted(self, request: "Request") -> "list[Weighted]":
        from tasks.distillation.contrast import contrast
        from tasks.unlearning.steps import trained_on

        models = {"base": request.base, "start": request.start}
        if "refilled" in (self.drawn_from, self.mask if self.alpha else None):
            models["refilled"] = self._of_refilled(request)
        unwanted = models.get(self.unwanted or "")
        if self.unwanted == "further":
            rest = 50, self.learning_rate, self.batch_tokens, request.seed
            unwanted = trained_on(request.start, request.forget, *rest)
        owner = models[self.mask if self.alpha else self.drawn_from]
        return contrast(models[self.drawn_from], unwanted, self.strength, owner, self.alpha)

    def _of_refilled(self, request: "Request") -> "Learner":
        """One pass over the text; ``ParameterError`` where there is none."""
        from tasks.errors import ParameterError
        from tasks.unlearning.steps import trained_on

        if request.refilled is None:
            raise ParameterError("drawn_from 'refilled' needs the text with other private words; give --refilled")
        text = request.retain.and_then(request.refilled)
        steps = max(1, round(int(text.is_target.sum()) / self.batch_tokens))
        return trained_on(request.base, text, steps, self.learning_rate, self.batch_tokens, request.seed)
