"""Settings of fillers and of how they are trained and fine-tuned: ``fillers.*`` and ``tuned_fillers.*`` in
``params.yaml`` (paper 3.2).
"""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from tasks.filling.methods import AnyMethod
from tasks.filling.settings import KINDS, FillingMethod
from tasks.language_model.settings import LoraAdaptation
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class MaskedTraining(Settings):
    """Training of a masked LM to predict masked words."""

    steps: int = Field(default=600, ge=1)
    """Number of optimiser steps."""
    batch_pieces: int = Field(default=768, ge=64)
    """Word pieces per step, padding included; sentences of similar length share a batch."""
    longest_sentence: int = Field(default=64, ge=8)
    """Maximum number of word pieces of a sentence, at most the model's limit; longer sentences are cut."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rates rise to their peak; then they fall to 0."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    dropout: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda dropout: not dropout)
    """Dropout rate, for text that is seen many times."""
    seed: Seed = 1
    """Seed of the order of sentences, of the masks and of the dropout."""


class HeadTraining(MaskedTraining):
    """Training of a masked-LM head on a pretrained body without one."""

    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of the head; the body's is ``body_learning_rate``."""
    body_learning_rate: float = Field(default=3e-4, ge=0)
    """Peak learning rate of the body; 0 freezes it. Its word embeddings, also the head's decoder, are always frozen."""


class MaskedLanguageModelFiller(Settings):
    """A Hugging Face masked language model."""

    kind: Literal["masked_lm"]
    model: str
    """Hub name (``bert-base-uncased``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    train_head: HeadTraining | None = None
    """Training of the masked-LM head on the generic corpus; ``null`` for a model with a head."""


class LoraTraining(LoraAdaptation):
    """LoRA tuning of a causal language model on prompts (paper 3.2), from sentences without markers."""

    steps: int = Field(default=200, ge=1)
    """Number of optimiser steps."""
    batch_sentences: int = Field(default=8, ge=1)
    """Sentences per step."""
    longest_sentence: int = Field(default=64, ge=8)
    """Maximum number of pieces of a sentence; longer ones are left out."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises to its peak; then it falls to 0."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of a sentence's words that the prompt masks, at least one word."""
    merge: bool = True
    """Whether the update is added to the weights in the filler's folder; otherwise the folder has only the update and
    names its base."""
    seed: Seed = 1
    """Seed of the order of sentences, of the masks and of the fresh weights."""


class CausalLanguageModelFiller(Settings):
    """A Hugging Face causal language model, tuned with LoRA or unchanged."""

    kind: Literal["causal_lm"]
    model: str
    """Hub name (``meta-llama/Llama-2-7b-hf``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    gguf_file: str | None = None
    """File in that folder with weights in GGUF, which are unpacked once into the filler's folder."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the model: ``auto`` is bfloat16 on a GPU and float32 on a CPU."""
    lora: LoraTraining | None = None
    """Tuning with LoRA on the generic corpus; ``null`` for an unchanged model."""


FillerSettings = Annotated[MaskedLanguageModelFiller | CausalLanguageModelFiller, Field(discriminator="kind")]


class Tuning(Settings):
    """Fine-tuning of a filler on masked in-domain text (paper 3.2, FT); it never reads masked words."""

    kind: str
    """Kind of the base."""
    base: str | None = None
    """The filler to start from: in params.yaml a key of ``fillers``, or of ``tuned_fillers`` for another round."""
    seed: Seed = 1
    text: Literal["unmasked", "filled"] = "unmasked"
    """``unmasked``: the sentences without any marker. ``filled``: the whole corpus, filled by the base first."""
    method: AnyMethod | None = None
    """Method of the fill, like a section of ``filling``: ``{kind: top_k}``; only with ``text: filled``."""
    held_out_share: float = Field(default=0.05, gt=0, le=0.5)
    """Share of the sentences that are held out with their repeats; the same ones in every round and with every seed."""
    minimum_sentences: int = Field(default=200, ge=1)
    """Minimum number of sentences to train on."""

    @model_validator(mode="after")
    def _method_fits(self) -> Self:
        method = self.method
        if self.text == "filled" and method is None:
            raise ValueError("text 'filled' needs a method that fills, such as method: {kind: top_k, k: 10}")
        if self.text == "unmasked" and method is not None:
            raise ValueError("text 'unmasked' fills nothing; leave method out, or set text: filled")
        if method is None:
            return self
        if method.counts_masked_words:
            raise ValueError(
                "method.prior 'counted' counts the masked words, which tuning never reads; take prior: domain or "
                "word_counts"
            )
        if method.reads_documents:
            raise ValueError(
                "method.consistent_within 'document' needs the originals and their documents, which tuning never "
                "reads; leave it out"
            )
        if method.copies > 1:
            raise ValueError("method.copies: a filler is tuned on one fill of each sentence; leave it out")
        if found := misfit(method, self.kind):
            raise ValueError(
                f"{found.what} needs a {found.needs} language model, and kind is {self.kind!r}; {found.remedy}"
            )
        return self


class MaskedLanguageModelTuning(Tuning, MaskedTraining):
    """Fine-tuning of a masked language model, body and head."""

    kind: Literal["masked_lm"]
    steps: int = Field(default=80, ge=1)
    """Number of optimiser steps."""
    masked_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """Peak learning rate of all weights except the word embeddings, which are frozen."""


class CausalLanguageModelTuning(Tuning, LoraTraining):
    """Fine-tuning of a causal language model, with LoRA on prompts."""

    kind: Literal["causal_lm"]


TuningSettings = Annotated[MaskedLanguageModelTuning | CausalLanguageModelTuning, Field(discriminator="kind")]


class Misfit(NamedTuple):
    """Reason why a method does not run with a kind of filler."""

    what: str
    """``method 'free'`` or ``prior 'counted'``."""
    needs: str
    """``masked`` or ``causal``."""
    remedy: str
    """Alternative method or setting."""


def misfit(method: FillingMethod, kind: str) -> Misfit | None:
    """Reason why the method does not run with fillers of the kind; ``None`` if it runs."""
    if method.fillers and kind not in method.fillers:
        return Misfit(f"method {method.kind!r}", KINDS[method.fillers[0]], "take top_1, top_k or sample")
    if kind == "causal_lm" and method.fillers and method.counts_masked_words:
        return Misfit("prior 'counted'", KINDS["masked_lm"], "take prior: domain")
    return None
