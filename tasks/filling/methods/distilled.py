"""Distilled text: a language model writes the corpus itself (corpus inverse distillation, Lu et al. 2025).

It fills no marker. Text of a model adapted on the masked text, or of a contrast of models, replaces the private text.
``palimpsest distil`` writes it.
"""

from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import FillingMethod

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill

Source = Literal["pretrained", "baseline1", "oracle"]
"""A model of the experiment: unadapted, adapted on the masked text without its markers, or adapted on the raw text."""


class Distilled(FillingMethod):
    """Text drawn from softmax((1 + strength) log p - strength log p_unwanted), or from the difference alone."""

    title: ClassVar[str] = "Distilled"
    sentence: ClassVar[str] = "A language model of the masked text writes as many lines by itself; no line is a fill."
    rewrites_lines: ClassVar[bool] = True
    kind: Literal["distilled"]
    of: Source = "baseline1"
    """The model that writes."""
    unwanted: Source | None = None
    """The model for the contrast; ``null`` for none."""
    strength: float | None = Field(default=None, gt=0)
    """Weight of the difference, in addition to the model; ``null`` for the difference alone, as in the paper."""
    alpha: float = Field(default=0.0, ge=0, le=1)
    """Minimum probability of a word by the mask's model, relative to the likeliest word; 0 allows all words."""
    mask: Source = "baseline1"
    """Model whose probabilities make the mask."""
    private_mask: bool = False
    """Allow a mask by a model that saw raw text, which prefers text that this model has memorised."""
    scanned_words: int = Field(default=5, ge=1)
    """Number of words n in the check for private text. A line is dropped if n of its words in a row, one of them
    private, are in the private text. Also if it equals a private line of at least n words."""
    longest: int = Field(default=60, ge=1)
    """Maximum number of words of a line."""
    copies: Literal[1] = 1
    """Always 1: the text has as many lines as the private text."""

    @model_validator(mode="after")
    def _mask_saw_nothing(self) -> Self:
        if self.alpha and self.mask == "oracle" and not self.private_mask:
            raise ValueError(
                "mask 'oracle' saw the private text, and prefers text that it has memorised; take 'baseline1', alpha "
                "0, or set private_mask to measure this effect"
            )
        return self

    @property
    def sources(self) -> dict[str, Source]:
        """From the option of 'palimpsest distil' to the model for it."""
        found: dict[str, Source | None] = {
            "model": self.of,
            "unwanted": self.unwanted,
            "mask-model": self.mask if self.alpha else None,
        }
        return {option: source for option, source in found.items() if source}

    def build(self, prepared: "PreparedFill") -> NoReturn:
        """Raise ``ParameterError``: the method fills nothing."""
        raise ParameterError("method 'distilled' fills no marker; use it with 'palimpsest distil'")
