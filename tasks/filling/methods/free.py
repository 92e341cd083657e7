"""Free: a causal language model writes the whole sentence (paper 3.2; ``causal_lm.free``)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tasks.filling.settings import ClassAware

if TYPE_CHECKING:
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

    def equal_copies(self) -> tuple[str, str]:
        """The first attempt draws nothing."""
        return "free takes the model's best sentence", "use top_k or sample, where the known words are forced"

    def build(self, prepared: "PreparedFill") -> "tuple[Filler, Casing]":
        """The filler with its fallback for malformed sentences, the same model with forced known words; and its
        casing."""
        from tasks.filling.causal_lm.constrained import constrained_filler
        from tasks.filling.causal_lm.free import FreeFiller
        from tasks.filling.methods.top_1 import Top1

        fallback, casing = constrained_filler(prepared, Top1(kind="top_1", batch_sentences=self.batch_sentences))
        return FreeFiller(prepared.words.opened.causal, self, prepared.randomness, fallback), casing
