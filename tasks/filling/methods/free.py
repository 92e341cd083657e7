"""Free: a causal language model writes the whole sentence (paper 3.2; ``causal_lm.free``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.filling.settings import ClassAware, RightContext, refuse_copies

if TYPE_CHECKING:
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_lines import Filler
    from tasks.filling.masked_sentence import Casing
    from tasks.filling.prepared_fill import PreparedFill


class Free(ClassAware):
    """A causal language model writes the whole sentence, and its words at the markers are taken (paper 3.2)."""

    title: ClassVar[str] = "Free"
    sentence: ClassVar[str] = "A causal language model writes the whole sentence; its words at the markers are taken."
    fillers: ClassVar[tuple[str, ...]] = ("causal_lm",)
    kind: Literal["free"]
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    attempts: int = Field(default=2, ge=0)
    """Maximum number of further attempts, by sampling, if the best sentence changes known words or has not one word for
    each marker."""
    temperature: float = Field(default=0.7, ge=0.01, le=100)
    """Sampling temperature of further attempts."""
    fallback: Literal["constrained", "unigram"] = "constrained"
    """Method after all attempts have failed: the same model with forced known words, or maskable words by their
    frequency in the word counts."""
    right_context: RightContext = RightContext()
    """Right context of the constrained fallback."""

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
        """Description of the sentences for the fallback."""
        return f"in sentences that were handed over to fallback={self.fallback!r}"

    def check(self, files: FillFiles) -> None:
        """Also check that the fallback by frequency has word counts."""
        super().check(files)
        if self.fallback == "unigram" and not files.word_counts:
            raise ParameterError("fallback 'unigram' needs --word-counts; make them with 'palimpsest count-words'")

    def build(self, prepared: PreparedFill) -> tuple[Filler, Casing]:
        """The filler with its fallback for malformed sentences, and its casing."""
        from tasks.filling.causal_lm.constrained import constrained_filler
        from tasks.filling.causal_lm.free import FreeFiller
        from tasks.filling.methods.top_1 import Top1
        from tasks.filling.methods.unigram import UnigramFiller

        words = prepared.words
        fallback: Filler
        if self.fallback == "unigram":
            fallback = UnigramFiller(words.off_list(words.frequencies, None), prepared.randomness)
            casing = words.casing(is_cased=True)
        else:
            best = Top1(kind="top_1", batch_sentences=self.batch_sentences, right_context=self.right_context)
            fallback, casing = constrained_filler(prepared, best)
        return FreeFiller(words.opened.causal, self, prepared.randomness, fallback), casing
