"""Settings of fillers and filling methods: ``fillers.*`` and ``filling.*`` in ``params.yaml`` (paper 3.2)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tasks.settings_base import Settings


class HeadTraining(Settings):
    """How a masked-LM head is trained on top of a pretrained body that comes without one."""

    steps: int = Field(default=600, ge=1)
    """Optimiser steps."""
    batch_pieces: int = Field(default=768, ge=64)
    """Word pieces per step, padding included; sentences of about equal length stand together."""
    longest_sentence: int = Field(default=64, ge=8)
    """Longer sentences are cut to so many word pieces."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of the head; the body's is ``body_learning_rate``."""
    body_learning_rate: float = Field(default=3e-4, ge=0)
    """Peak learning rate of the body; 0 freezes it. Its word embeddings, which are the head's decoder too, stay as
    they are."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rates rise to their peak; they fall to 0 in the rest."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    seed: int = Field(default=1, ge=0)
    """Seed of the order of sentences and of the masks."""


class MaskedLanguageModelFiller(Settings):
    """A masked language model of Hugging Face's, by hub name or folder."""

    kind: Literal["masked_lm"]
    model: str
    """Hub name (``bert-base-uncased``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    train_head: HeadTraining | None = None
    """Training of the masked-LM head on the generic corpus; ``null`` where the model brings a head of its own."""


FillerSettings = Annotated[MaskedLanguageModelFiller, Field(discriminator="kind")]


class _MaskedLanguageModelMethod(Settings):
    uses_filler: ClassVar[bool] = True
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""


class Top1(_MaskedLanguageModelMethod):
    """The filler's best word."""

    kind: Literal["top_1"]


class TopK(_MaskedLanguageModelMethod):
    """A random one of the K best words, drawn again while it is on the list of kept words."""

    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: candidates per marker."""


class Sample(_MaskedLanguageModelMethod):
    """A draw from the filler's whole distribution over words that are not on the list of kept words."""

    kind: Literal["sample"]
    temperature: float = Field(default=1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it."""


class Unigram(Settings):
    """Control without context: a word off the list, drawn by its frequency in the generic corpus."""

    uses_filler: ClassVar[bool] = False
    kind: Literal["unigram"]
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as for the other methods."""


FillingSettings = Annotated[Top1 | TopK | Sample | Unigram, Field(discriminator="kind")]
