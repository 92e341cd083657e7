"""Settings of the evaluation of masking: ``masking_evaluation`` in ``params.yaml``."""

from pydantic import Field

from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed


class GoldSet(Settings):
    """A labelled text that techniques are held against."""

    source: SourcePath
    """Labelled file: JSON lines ``{"text": "...", "spans": [{"start", "end", "label"}]}``."""
    labels: dict[str, str | None] | None = None
    """Labels of the file to marker classes, where they differ from the mapping that ships with palimpsest; ``null`` as
    a class: such words are not private, and their spans are ignored and counted."""


class MaskingEvaluationSettings(Settings):
    """Gold sets by name, and how sure their numbers are."""

    gold_sets: dict[str, GoldSet] = Field(default_factory=dict)
    """Labelled texts by name."""
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the documents for the confidence intervals."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
    seed: Seed = 1
    """Seed of the resampling."""
