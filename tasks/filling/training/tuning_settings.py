"""Settings of the fine-tuning of fillers: ``tuned_fillers.*`` in ``params.yaml`` (paper 3.2)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.filling.filler_settings import LoraTraining, MaskedTraining
from tasks.filling.needed_kind import misfit
from tasks.filling.settings import FillingSettings
from tasks.settings.base import Settings


class _Tuning(Settings):
    """How a filler is fine-tuned on in-domain text that is masked (paper 3.2, FT); no original is ever read."""

    base: str | None = None
    """The filler that it starts from: in params.yaml a key of ``fillers``, or ``tuned_fillers`` for another round."""
    text: Literal["unmasked", "filled"] = "unmasked"
    """``unmasked``: the sentences without any marker. ``filled``: the whole corpus, filled by the base first."""
    method: FillingSettings | None = None
    """How the corpus is filled, as a section of ``filling`` says it: ``{kind: top_k}``; with ``text: filled`` only."""
    held_out_share: float = Field(default=0.05, gt=0, le=0.5)
    """Share of the sentences that are never trained on, nor their repeats; the same ones in every round and with every
    seed."""
    minimum_sentences: int = Field(default=200, ge=1)
    """Fewer sentences to train on are an error."""

    @model_validator(mode="after")
    def _method_fits(self) -> "_Tuning":
        if self.text == "filled" and self.method is None:
            raise ValueError("text 'filled' needs a method that fills, such as method: {kind: top_k, k: 10}")
        if self.text == "unmasked" and self.method is not None:
            raise ValueError("text 'unmasked' fills nothing; leave method out, or set text: filled")
        if getattr(self.method, "forbid_original", False):
            raise ValueError("method.forbid_original needs the originals, which tuning never reads; leave it out")
        if getattr(self.method, "prior", None) == "counted":
            raise ValueError(
                "method.prior 'counted' counts the masked words, which tuning never reads; take prior: domain or "
                "word_counts"
            )
        if getattr(self.method, "consistent_within", None) == "document":
            raise ValueError(
                "method.consistent_within 'document' needs the originals and their documents, which tuning never "
                "reads; leave it out"
            )
        if getattr(self.method, "copies", 1) > 1:
            raise ValueError("method.copies: a filler is tuned on one fill of each sentence; leave it out")
        # ``kind`` is the base's, and belongs to the classes below.
        kind = str(getattr(self, "kind", None))
        if self.method is not None and (found := misfit(self.method, kind)):
            raise ValueError(f"{found.what} needs a {found.needs} language model, and kind is {kind!r}; {found.remedy}")
        return self


class MaskedLanguageModelTuning(_Tuning, MaskedTraining):
    """Of a masked language model, body and head."""

    kind: Literal["masked_lm"]
    steps: int = Field(default=80, ge=1)
    """Optimiser steps."""
    masked_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """Peak learning rate of all weights but the word embeddings, which stay as they are."""


class CausalLanguageModelTuning(_Tuning, LoraTraining):
    """Of a causal language model, with LoRA on prompts."""

    kind: Literal["causal_lm"]


TuningSettings = Annotated[MaskedLanguageModelTuning | CausalLanguageModelTuning, Field(discriminator="kind")]
