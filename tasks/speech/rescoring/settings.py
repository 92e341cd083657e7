"""Settings of rescoring."""

from typing import Literal

from pydantic import Field, field_validator

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed
from tasks.speech.word_errors.settings import WordErrorSettings


class OverlapLimits(Settings):
    """How much of the test a language model may have seen in training, where its text is named."""

    maximum_shared_sentences: float | None = Field(default=None, ge=0, le=1)
    """Share of the test references that may stand in the training text; ``null``: any, the share is only reported."""
    maximum_shared_8_grams: float | None = Field(default=None, ge=0, le=1)
    """Share of the test references' stretches of eight words that may stand in the training text; ``null``: any."""

    @property
    def limited(self) -> bool:
        """Whether one of the limits is set."""
        return (self.maximum_shared_sentences, self.maximum_shared_8_grams) != (None, None)


class NbestSource(Settings):
    """N-best lists of a recogniser: one part of ``speech.nbest.*`` in ``params.yaml``."""

    source: str
    """File of JSON lines, plain or compressed: ``{"utterance_id", "reference", "hypotheses": [{"text", "score"}]}``."""
    utterances: int | None = Field(default=None, ge=1)
    """At most so many utterances, drawn by the seed whatever the recogniser made of them; ``null`` for all."""
    seed: Seed = 1
    """Seed of the draw."""


class NbestCorpus(Settings):
    """N-best lists of recordings in the language of one private corpus."""

    dev: NbestSource
    """What the weights are tuned on."""
    test: NbestSource
    """What is measured, once."""


class RescoringSettings(OverlapLimits):
    """``speech.rescoring`` in ``params.yaml``: what is tuned on the development lists, and how."""

    hypotheses_at_most: int = Field(default=100, ge=1)
    """Hypotheses of each list that are looked at, the best ones by the recogniser."""
    lm_weights: list[float] = Field(default=[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0], min_length=1)
    """Weights of the language model's log-probability beside the recogniser's score: the grid."""
    insertion_bonuses: list[float] = Field(default=[-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0], min_length=1)
    """What each word of a hypothesis is worth, in units of the recogniser's score: the grid."""
    unknown_word_bonuses: list[float] = Field(default=[0.0, -1.0, -2.0, -4.0], min_length=1)
    """What each word outside the language model's vocabulary is worth, at most 0: a model that took many words for one
    unknown token finds that token probable."""
    source_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3, 0.5, 0.7], min_length=1)
    """Weights of the source model's log-probability, which is subtracted where there is such a model: the grid. A large
    one is the density ratio, an n-gram model of low order LODR."""
    source_model: str | None = None
    """Language model of the recogniser's own training text, which is subtracted: folder, ``package:NAME/FOLDER`` or
    name on the hub; ``null``: none."""
    resamples: int = Field(default=200, ge=0)
    """Draws of the development utterances; each weight is the mean of what is best on each draw. 0: what is best on the
    utterances as they are."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What a causal language model computes in; ``auto`` is bfloat16 on a GPU and float32 on a processor, where
    bfloat16 is 1.5 times as fast and moves the score of a hypothesis by 0.2 nats. A source model of another kind
    computes as it always does."""

    @field_validator("lm_weights", "insertion_bonuses", "unknown_word_bonuses", "source_weights")
    @classmethod
    def _check_grid(cls, values: list[float]) -> list[float]:
        if len(set(values)) != len(values) or 0.0 not in values:
            raise ValueError("give numbers that differ, 0 among them, such as [0.0, 0.1, 0.2]")
        return sorted(values)

    @field_validator("lm_weights", "source_weights")
    @classmethod
    def _check_weights(cls, values: list[float]) -> list[float]:
        if min(values) < 0:
            raise ValueError("give weights from 0 on")
        return values

    @field_validator("unknown_word_bonuses")
    @classmethod
    def _check_bonuses(cls, values: list[float]) -> list[float]:
        if max(values) > 0:
            raise ValueError("give numbers of at most 0")
        return values


class RescoreSettings(Settings):
    """What the command ``rescore`` takes from ``speech``."""

    rescoring: RescoringSettings = RescoringSettings()
    word_errors: WordErrorSettings = WordErrorSettings()
