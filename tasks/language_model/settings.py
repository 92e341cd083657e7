"""Settings of the language model and its evaluation (paper 3.3, 4.2)."""

from typing import Literal

from pydantic import Field

from tasks.settings_base import Settings


class VocabularySettings(Settings):
    """The word vocabulary, built on the generic corpus alone: no private word can be in it."""

    size: int = Field(default=20_000, ge=8)
    """Words and special tokens together (paper: about 85,000)."""
    minimum_count: int = Field(default=2, ge=1)
    """Rarer words stay out."""


class ArchitectureSettings(Settings):
    """A Transformer decoder with tied embeddings."""

    layers: int = Field(default=3, ge=1)
    """Paper: 6."""
    heads: int = Field(default=4, ge=1)
    """Paper: 12."""
    width: int = Field(default=128, ge=8)
    """Units; paper: 768."""
    maximum_tokens: int = Field(default=128, ge=8)
    """Positions; longer sentences are divided into windows, none is cut."""


class TrainingSettings(Settings):
    """Optimisation of one training run."""

    epochs: float = Field(default=1.0, gt=0)
    """Passes over the training text; may be a fraction."""
    batch_tokens: int = Field(default=512, ge=16)
    """Targets per optimiser step, about."""
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
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of matrix products; ``auto``: bfloat16 where the processor has it."""
    seed: int = 1
    """Seed of the pretraining; adaptation takes the cell's seed."""


class LanguageModelSettings(Settings):
    """``language_model`` in ``params.yaml``."""

    vocabulary: VocabularySettings
    architecture: ArchitectureSettings
    pretraining: TrainingSettings
    adaptation: TrainingSettings


class EvaluationSettings(Settings):
    """``evaluation`` in ``params.yaml``."""

    bootstrap_samples: int = Field(default=1000, ge=100)
    """Resamples of the test sentences for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: int = 1
    """Seed of the resampling."""
