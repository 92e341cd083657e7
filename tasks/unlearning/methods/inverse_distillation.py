"""Corpus inverse distillation (Lu, Isonuma, Mori and Sakata, "UniDetox", ICLR 2025).

Text is drawn from the contrast of a model without the unwanted text and one with it. The model that must forget is then
trained on the drawn text. Unlike a decoding-time method, the text can be shared and can train any model.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.unlearning.method import Request, Steps, UnlearningMethod

if TYPE_CHECKING:
    from tasks.language_model.learners import Learner, MarkedText

_LONGEST = 40


class InverseDistillation(UnlearningMethod):
    """Training on text drawn by contrast; ``unwanted: null`` draws from one model alone, the control."""

    title: ClassVar[str] = "Inverse distillation"
    sentence: ClassVar[str] = "Trains on text that is drawn by contrast with a model of the text to forget."
    kind: Literal["inverse_distillation"]
    drawn_from: Literal["base", "start"] = "base"
    """Model that the text is drawn from: ``base`` (before adaptation), or ``start`` (the model that must forget)."""
    unwanted: Literal["start"] | None = "start"
    """Model of the unwanted text: ``start`` (the model that must forget); ``null``: none."""
    alpha: float = Field(default=0.1, ge=0, le=1)
    """A word is a candidate if the model before adaptation finds it at least this many times as probable as the
    likeliest; 0: all. The model that must forget would admit text that it has memorised."""
    texts: int = Field(default=1500, ge=10)
    """Number of sentences to draw."""
    steps: Steps = Field(default=[25, 50, 100])
    """Strengths: numbers of training steps on the drawn sentences."""
    learning_rate: float = Field(default=1e-3, gt=0)
    batch_tokens: int = Field(default=512, ge=16)

    def forgetting(self, request: Request) -> "Iterator[tuple[float, Learner]]":
        """See ``UnlearningMethod``."""
        from tasks.unlearning.steps import trained_on

        drawn = self.distilled(request)
        for steps in self.steps:
            rest = self.learning_rate, self.batch_tokens, request.seed
            yield steps, trained_on(request.start, drawn, int(steps), *rest)

    def distilled(self, request: Request) -> "MarkedText":
        """The text; it is as private as the text that the models read."""
        from tasks.distillation.contrast import contrast, contrasted_sentences

        model = request.base if self.drawn_from == "base" else request.start
        unwanted = request.start if self.unwanted else None
        weighted = contrast(model, unwanted, None, request.base, self.alpha)
        drawn = contrasted_sentences(weighted, self.texts, _LONGEST, request.seed)
        return request.start.encode(" ".join(words) for words in drawn)
