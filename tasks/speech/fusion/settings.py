"""Settings of shallow fusion and of how its weights are found."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.settings.base import Settings
from tasks.speech.rescoring.settings import OverlapLimits
from tasks.speech.search.settings import SearchSettings
from tasks.speech.word_errors.settings import WordErrorSettings

InternalModel = Literal["none", "density_ratio", "lodr", "zero_encoder"]


class FusionSettings(OverlapLimits):
    """What is added to the transducer's scores, and the weights that are tried on dev."""

    lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], min_length=1)
    """Weights of the language model to try; the one in the middle is decoded with first."""
    insertion_bonuses: list[float] = Field(default=[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], min_length=1)
    """Nats for each word to try: a language model makes every word cost something, and words are lost without."""
    internal_lm: InternalModel = "none"
    """What stands for the language that the transducer has learned from its own training text, and is taken off:
    ``density_ratio``, a word-level model of that text (McDermott et al. 2019); ``lodr``, a bigram of its units (Zheng
    et al. 2022); ``zero_encoder``, its own predictor and joiner without a signal (Variani et al. 2020)."""
    internal_lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3], min_length=1)
    """Weights of the internal model to try, where there is one."""
    unknown_log_share: float = Field(default=-9.2, le=0)
    """Logarithm of the share of the unknown word's probability that one word outside the vocabulary has: about one in
    ten thousand."""
    tuning_rounds: int = Field(default=2, ge=1)
    """Times that dev is decoded with the weights that look best so far."""

    @field_validator("lm_weights", "internal_lm_weights")
    @classmethod
    def _not_negative(cls, weights: list[float]) -> list[float]:
        if min(weights) < 0:
            raise ValueError("give weights from 0 on")
        return weights

    @model_validator(mode="after")
    def _has_no_weights_without_use(self) -> Self:
        # Settings that were read and written again name all their fields: only other weights than the usual were given.
        usual = type(self).model_fields["internal_lm_weights"].default
        if self.internal_lm == "none" and any(self.internal_lm_weights) and self.internal_lm_weights != usual:
            raise ValueError("internal_lm is 'none', so internal_lm_weights have no use; leave them out")
        return self


class FuseSettings(Settings):
    """What the command ``fuse`` takes from ``speech``."""

    search: SearchSettings = SearchSettings()
    fusion: FusionSettings = FusionSettings()
    word_errors: WordErrorSettings = WordErrorSettings()
