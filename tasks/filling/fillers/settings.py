"""Settings of fillers and of how they are trained and fine-tuned: ``fillers.*`` and ``tuned_fillers.*`` in
``params.yaml`` (paper 3.2).
"""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.filling.methods import AnyMethod
from tasks.filling.settings import KINDS, ChoosingMethod, FillingMethod
from tasks.language_model.settings import LoraAdaptation
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class MaskedTraining(Settings):
    """How a masked LM learns to guess masked words."""

    steps: int = Field(default=600, ge=1)
    """Optimiser steps."""
    batch_pieces: int = Field(default=768, ge=64)
    """Word pieces per step, padding included; sentences of about equal length stand together."""
    longest_sentence: int = Field(default=64, ge=8)
    """Longer sentences are cut to so many word pieces, or to as many as the model takes at once."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rates rise to their peak; they fall to 0 in the rest."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    dropout: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda dropout: not dropout)
    """Share of the model's units left out at random: for text that is seen many times."""
    seed: Seed = 1
    """Seed of the order of sentences, of the masks and of the dropout."""


class HeadTraining(MaskedTraining):
    """How a masked-LM head is trained on top of a pretrained body that comes without one."""

    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of the head; the body's is ``body_learning_rate``."""
    body_learning_rate: float = Field(default=3e-4, ge=0)
    """Peak learning rate of the body; 0 freezes it. Its word embeddings, which are the head's decoder too, stay as
    they are."""


class MaskedLanguageModelFiller(Settings):
    """A masked language model of Hugging Face's, by hub name or folder."""

    kind: Literal["masked_lm"]
    model: str
    """Hub name (``bert-base-uncased``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    train_head: HeadTraining | None = None
    """Training of the masked-LM head on the generic corpus; ``null`` where the model brings a head of its own."""


class LoraTraining(LoraAdaptation):
    """How a causal language model is tuned with LoRA on prompts (paper 3.2), by sentences without markers."""

    steps: int = Field(default=200, ge=1)
    """Optimiser steps."""
    batch_sentences: int = Field(default=8, ge=1)
    """Sentences per step."""
    longest_sentence: int = Field(default=64, ge=8)
    """Sentences with more pieces are left out."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises to its peak; it falls to 0 in the rest."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of a sentence's words that the prompt masks, one at least."""
    merge: bool = True
    """Whether the update is added to the weights in the filler's folder; otherwise the folder holds the update alone
    and names its base."""
    seed: Seed = 1
    """Seed of the order of sentences, of the masks and of the fresh weights."""


class CausalLanguageModelFiller(Settings):
    """A causal language model of Hugging Face's, tuned with LoRA or as it is."""

    kind: Literal["causal_lm"]
    model: str
    """Hub name (``meta-llama/Llama-2-7b-hf``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    gguf_file: str | None = None
    """File in that folder, where the weights are in GGUF; they are unpacked once, into the filler's own folder."""
    precision: Literal["auto", "float32", "bfloat16", "4bit"] = "auto"
    """What the model computes in: ``auto`` is bfloat16 on a GPU and float32 on a processor; ``4bit`` needs a GPU and
    the package bitsandbytes."""
    lora: LoraTraining | None = None
    """Tuning with LoRA on the generic corpus; ``null`` takes the model as it is."""


FillerSettings = Annotated[MaskedLanguageModelFiller | CausalLanguageModelFiller, Field(discriminator="kind")]


class Tuning(Settings):
    """How a filler is fine-tuned on in-domain text that is masked (paper 3.2, FT); no original is ever read."""

    kind: str
    """Of the base."""
    base: str | None = None
    """The filler that it starts from: in params.yaml a key of ``fillers``, or ``tuned_fillers`` for another round."""
    seed: Seed = 1
    text: Literal["unmasked", "filled"] = "unmasked"
    """``unmasked``: the sentences without any marker. ``filled``: the whole corpus, filled by the base first."""
    method: AnyMethod | None = None
    """How the corpus is filled, as a section of ``filling`` says it: ``{kind: top_k}``; with ``text: filled`` only."""
    held_out_share: float = Field(default=0.05, gt=0, le=0.5)
    """Share of the sentences that are never trained on, nor their repeats; the same ones in every round and with every
    seed."""
    minimum_sentences: int = Field(default=200, ge=1)
    """Fewer sentences to train on are an error."""

    @model_validator(mode="after")
    def _method_fits(self) -> Self:
        if self.text == "filled" and self.method is None:
            raise ValueError("text 'filled' needs a method that fills, such as method: {kind: top_k, k: 10}")
        if self.text == "unmasked" and self.method is not None:
            raise ValueError("text 'unmasked' fills nothing; leave method out, or set text: filled")
        method = self.method
        if method is not None and method.counts_masked_words:
            raise ValueError(
                "method.prior 'counted' counts the masked words, which tuning never reads; take prior: domain or "
                "word_counts"
            )
        if method is not None and method.reads_documents:
            raise ValueError(
                "method.consistent_within 'document' needs the originals and their documents, which tuning never "
                "reads; leave it out"
            )
        if method is not None and method.copies > 1:
            raise ValueError("method.copies: a filler is tuned on one fill of each sentence; leave it out")
        if method is not None and (found := misfit(method, self.kind)):
            raise ValueError(
                f"{found.what} needs a {found.needs} language model, and kind is {self.kind!r}; {found.remedy}"
            )
        return self


class MaskedLanguageModelTuning(Tuning, MaskedTraining):
    """Of a masked language model, body and head."""

    kind: Literal["masked_lm"]
    steps: int = Field(default=80, ge=1)
    """Optimiser steps."""
    masked_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """Peak learning rate of all weights but the word embeddings, which stay as they are."""


class CausalLanguageModelTuning(Tuning, LoraTraining):
    """Of a causal language model, with LoRA on prompts."""

    kind: Literal["causal_lm"]


TuningSettings = Annotated[MaskedLanguageModelTuning | CausalLanguageModelTuning, Field(discriminator="kind")]


@dataclass(frozen=True)
class Misfit:
    """What keeps a method from running with a kind of filler."""

    what: str
    """``method 'free'`` or ``prior 'counted'``."""
    needs: str
    """``masked`` or ``causal``."""
    remedy: str
    """What to take instead."""


def misfit(method: FillingMethod, kind: str) -> Misfit | None:
    """What keeps the method from running with fillers of the kind; ``None`` where nothing does."""
    if method.fillers and kind not in method.fillers:
        return Misfit(f"method {method.kind!r}", KINDS[method.fillers[0]], "take top_1, top_k or sample")
    masked_only = method.masked_only if isinstance(method, ChoosingMethod) else None
    if kind == "causal_lm" and masked_only is not None:
        return Misfit(masked_only[0], KINDS["masked_lm"], masked_only[1])
    return None
