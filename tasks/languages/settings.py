"""Settings of the stages for mixed text: ``conclusion`` in ``params.yaml``."""

from pydantic import Field

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class ConclusionSettings(Settings):
    """Settings of the hypothesis test."""

    level: float = Field(default=0.01, gt=0, lt=1)
    """Significance level: below this probability of chi-squared under independence, the relation is significant."""
    bootstrap_samples: int = Field(default=1000, ge=100)
    """Number of resamples of lines for the intervals."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the intervals."""
    seed: Seed = 1
    """Seed of the resamples and of the folds."""
