"""Distilled text: a language model writes the corpus by itself (corpus inverse distillation, Lu et al. 2025).

It fills no marker: text of a model that was adapted on the masked text, or of a contrast of models, takes the place of
the private one. ``palimpsest distil`` writes it.
"""

from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import FillingMethod

if TYPE_CHECKING:
    from tasks.filling.context import FillContext

Source = Literal["pretrained", "baseline1", "oracle"]
"""A model of the experiment: before adaptation, adapted on the masked text without its markers, on the raw text."""


class Distilled(FillingMethod):
    """softmax((1 + strength) log p - strength log p_unwanted), or of the difference alone, draws every word."""

    title: ClassVar[str] = "Distilled"
    sentence: ClassVar[str] = "A language model of the masked text writes as many lines by itself; no line is a fill."
    rewrites_lines: ClassVar[bool] = True
    kind: Literal["distilled"]
    of: Source = "baseline1"
    """The model that writes."""
    unwanted: Source | None = None
    """The model that it is held against; ``null``: none."""
    strength: float | None = Field(default=None, gt=0)
    """Weight of the difference beside what the model itself says; ``null``: the difference alone, as in the paper."""
    alpha: float = Field(default=0.0, ge=0, le=1)
    """A word counts where the mask's owner finds it at least so many times as probable as the likeliest one; 0: all."""
    mask: Source = "baseline1"
    """Whose probabilities the mask goes by."""
    private_mask: bool = False
    """Allow the mask to be owned by a model that saw raw text: it then prefers what that one knows by heart."""
    scanned_words: int = Field(default=5, ge=1)
    """A line is dropped that has a private word among so many words of a line of the private text, or is such a line of
    so many words or more."""
    longest: int = Field(default=60, ge=1)
    """Words that a line is cut off behind."""
    copies: Literal[1] = 1
    """It has as many lines as the private text."""

    @model_validator(mode="after")
    def _mask_saw_nothing(self) -> Self:
        if self.alpha and self.mask == "oracle" and not self.private_mask:
            raise ValueError(
                "mask 'oracle' saw the private text, and lets through what it knows by heart; take 'baseline1', alpha "
                "0, or set private_mask to see what that does"
            )
        return self

    @property
    def sources(self) -> dict[str, Source]:
        """The models that it needs, by the option of 'palimpsest distil'."""
        found: dict[str, Source | None] = {
            "model": self.of,
            "unwanted": self.unwanted,
            "mask-model": self.mask if self.alpha else None,
        }
        return {option: source for option, source in found.items() if source}

    def build(self, context: "FillContext") -> NoReturn:
        """``ParameterError``: it fills nothing."""
        raise ParameterError("method 'distilled' fills no marker; 'palimpsest distil' writes text by it")
