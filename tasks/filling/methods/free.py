"""Free: a causal language model writes the whole sentence (paper 3.2; ``causal_lm.free``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import ModelMethod, RightContext, refuse_copies

if TYPE_CHECKING:
    from tasks.filling.context import FillContext
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_corpus import BuiltFiller


class Free(ModelMethod):
    """A causal language model writes the whole sentence, and its words at the markers are taken (paper 3.2)."""

    title: ClassVar[str] = "Free"
    sentence: ClassVar[str] = "A causal language model writes the whole sentence; its words at the markers are taken."
    fillers: ClassVar[tuple[str, ...]] = ("causal_lm",)
    kind: Literal["free"]
    attempts: int = Field(default=2, ge=0)
    """How often a sentence is written again, now by chance, where the best sentence has other words than the known ones
    or not one word for each marker."""
    temperature: float = Field(default=0.7, ge=0.01, le=100)
    """Of these further attempts."""
    fallback: Literal["constrained", "unigram"] = "constrained"
    """What fills a sentence when all attempts have failed: the same model with the known words forced, or words off the
    list of kept words by their frequency in the word counts."""
    right_context: RightContext = RightContext()
    """Of the constrained fallback."""

    @model_validator(mode="after")
    def _draws_nothing(self) -> Self:
        refuse_copies(
            self.copies,
            "free takes the model's best sentence",
            "use top_k or sample, where the known words are forced, or leave copies out",
        )
        return self

    @property
    def fallbacks(self) -> str:
        """What is handed over."""
        return f"in sentences that were handed over to fallback={self.fallback!r}"

    def check(self, files: FillFiles) -> None:
        """The fallback by frequency wants to know the frequencies."""
        super().check(files)
        if self.fallback == "unigram" and not files.word_counts:
            raise ParameterError("fallback 'unigram' needs --word-counts; 'palimpsest count-words' makes them")

    def build(self, context: FillContext) -> BuiltFiller:
        """The model, and what fills where it does not get a sentence right."""
        from tasks.filling.causal_lm.constrained import constrained_filler
        from tasks.filling.causal_lm.free import FreeFiller
        from tasks.filling.filled_corpus import BuiltFiller
        from tasks.filling.methods.top_1 import Top1
        from tasks.filling.methods.unigram import UnigramFiller

        if self.fallback == "unigram":
            by_frequency = UnigramFiller(context.off_list(context.frequencies), context.randomness)
            filler = FreeFiller(context.model.causal, self, context.randomness, by_frequency)
            return BuiltFiller(filler, context.casing(is_cased=True))
        best = Top1(kind="top_1", batch_sentences=self.batch_sentences, right_context=self.right_context)
        constrained = constrained_filler(context, best)
        return constrained._replace(
            filler=FreeFiller(context.model.causal, self, context.randomness, constrained.filler)
        )
