"""Settings of word error rates."""

from pydantic import Field

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class WordErrorSettings(Settings):
    """``speech.word_errors`` in ``params.yaml``: how the intervals are made."""

    bootstrap_samples: int = Field(default=1000, ge=100)
    """Resamples of the test utterances for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
