"""Settings of the language model and its evaluation (paper 3.3, 4.2)."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.language_model.kind_settings import (
    MOST_EPOCHS,
    CausalLanguageModelSettings,
    Kind,
    NgramSettings,
    TransformerSettings,
)
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class VocabularySettings(Settings):
    """The word vocabulary, built on the generic corpus alone: no private word can be in it."""

    size: int = Field(default=20_000, ge=8)
    """Words and special tokens together (paper: about 85,000)."""
    minimum_count: int = Field(default=2, ge=1)
    """Rarer words stay out."""


class ArchitectureSettings(Settings):
    """A Transformer decoder with tied embeddings."""

    layers: int = Field(default=3, ge=1, le=1000)
    """Paper: 6."""
    heads: int = Field(default=4, ge=1)
    """Paper: 12."""
    width: int = Field(default=128, ge=8, le=65_536)
    """Units; paper: 768."""
    maximum_tokens: int = Field(default=128, ge=8, le=65_536)
    """Positions; longer sentences are divided into windows, none is cut."""
    context: Literal["sentence", "packed", "stream"] = "sentence"
    """What a position attends to. ``sentence``: the words of its own sentence, one sentence a row; ``packed``: the
    same, with several sentences in a row, so that little is padding; ``stream``: all that stands before it in a window
    of the running text, sentences before its own as well."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(
                f"width {self.width!r} cannot be divided among {self.heads!r} heads; give a width that is a multiple "
                "of the heads"
            )
        return self


class TrainingSettings(Settings):
    """Optimisation of one training run."""

    epochs: float = Field(default=1.0, gt=0, le=MOST_EPOCHS)
    """Passes over the training text; may be a fraction."""
    batch_tokens: int = Field(default=512, ge=16)
    """Targets per optimiser step, about, over all devices."""
    accumulate: int = Field(default=1, ge=1)
    """Parts that each such batch is computed in, one after the other, where it is too large for the memory."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps with a rising learning rate; a cosine brings it down after."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decay of the weight matrices, as in AdamW; biases and norms have none."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the hidden units that are left out at random, after the embedding and after each branch of a layer."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    validate_every_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two validations; 0: one after each epoch."""
    patience: int = Field(default=0, ge=0)
    """Training stops after so many validations in a row without a smaller loss, and the weights of the smallest one are
    kept; 0: train to the end and keep the last."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of matrix products; ``auto``: bfloat16 where the processor has it."""
    seed: Seed = 1
    """Seed of the pretraining; adaptation takes the cell's seed."""


class AdaptationSettings(TrainingSettings):
    """Optimisation of an adaptation, and what it is mixed with."""

    generic_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of each epoch's targets that are generic text, so that the model does not forget it; 0: none."""


class LanguageModelSettings(Settings):
    """``language_model`` in ``params.yaml``."""

    kind: Kind
    """What is adapted and measured downstream; each kind has a section of its own, and the others are not read."""
    vocabulary: VocabularySettings
    architecture: ArchitectureSettings
    pretraining: TrainingSettings
    adaptation: AdaptationSettings
    transformer: TransformerSettings
    ngram: NgramSettings = NgramSettings()
    causal_lm: CausalLanguageModelSettings | None = None
    """Needed where ``kind`` is ``causal_lm``."""

    @model_validator(mode="after")
    def _has_section_of_its_kind(self) -> Self:
        # dvc.yaml makes the stages depend on the section by its name, so a default that is not written down is no help.
        if self.kind not in self.model_fields_set:
            raise ValueError(f"kind is {self.kind!r}, and there is no section {self.kind!r}; give it, if only as {{}}")
        return self


class EvaluationSettings(Settings):
    """``evaluation`` in ``params.yaml``."""

    bootstrap_samples: int = Field(default=1000, ge=100)
    """Resamples of the test sentences for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
    markers: Literal["in_vocabulary", "renormalised"] = "in_vocabulary"
    """Markers such as [MASK] keep what a model gives them, as in the paper, or all other tokens share it."""
    frequency_classes: list[int] = Field(default=[100, 1000, 10_000])
    """Rising ranks in generic text that divide known words into classes of frequency."""

    @field_validator("frequency_classes")
    @classmethod
    def _check_rising(cls, limits: list[int]) -> list[int]:
        if limits != sorted({limit for limit in limits if limit > 0}):
            raise ValueError("give ranks from 1 on that rise, such as [100, 1000, 10000]")
        return limits
