"""Settings of fillers and of how they are trained: ``fillers.*`` in ``params.yaml`` (paper 3.2)."""

from typing import Annotated, Literal

from pydantic import Field

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
    seed: Seed = 1
    """Seed of the order of sentences and of the masks."""


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


class LoraTraining(Settings):
    """How a causal language model is tuned with LoRA on prompts (paper 3.2), by sentences without markers."""

    steps: int = Field(default=200, ge=1)
    """Optimiser steps."""
    batch_sentences: int = Field(default=8, ge=1)
    """Sentences per step."""
    longest_sentence: int = Field(default=64, ge=8)
    """Sentences with more pieces are left out."""
    rank: int = Field(default=8, ge=1)
    """r: rank of the update of each matrix."""
    alpha: float = Field(default=16.0, gt=0)
    """The update is scaled by alpha / r."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Share of the update's inputs that are left out at random."""
    target_modules: list[str] | None = None
    """Names of the layers that are updated; ``null`` takes all linear ones but the head. A head that shares its weight
    with the embeddings cannot be among them."""
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
