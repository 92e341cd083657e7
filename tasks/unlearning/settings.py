"""The section ``unlearning``: the unlearning methods and the settings of their comparison."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings.base import Settings
from tasks.unlearning.methods import AnyUnlearning

MOST_BITS = 33.0
"""Upper limit of exposure in bits, from the number of possible secrets: three of some 2,000 words."""


class UnlearningSettings(Settings):
    """Planted secrets, the budget of a method, and the methods by name."""

    methods: dict[str, AnyUnlearning] = Field(default_factory=dict)
    """Unlearning methods by name; ``compare.unlearned`` selects those to compare."""
    budget: float = Field(default=0.05, ge=0)
    """Largest rise of the perplexity on valid text, as a share of the perplexity before. The last strength within it is
    used, or the first if none is."""
    technique: str = "allow_list"
    """Masking technique, one of ``compare.techniques``, that marks the private words of ordinary lines. In planted
    lines the planted words are private."""
    fill: str = "unigram"
    """Filling method without a filler, a key of ``filling``, that fills the private words again."""
    copies: int = Field(default=3, ge=1)
    """Number of refilled copies of each line."""
    secrets: int = Field(default=20, ge=2)
    """Number of planted sentences of each kind and each number of repetitions."""
    repetitions: list[Annotated[int, Field(ge=1)]] = Field(default=[1, 4, 16], min_length=1)
    """Numbers of times that planted sentences occur in the text."""
    references: int = Field(default=1000, ge=255)
    """Number of sentences of the same form, in no training text, among which a planted one is ranked."""
    lines: int = Field(default=400, ge=20)
    """Number of ordinary lines to forget, drawn at random; as many others are in no training text."""
    unit: Literal["line", "document"] = "line"
    """Unit of the draw: lines, or whole documents until they have enough lines."""
    relearned_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of the planted sentences that an attacker knows and trains the model on again."""
    relearning_steps: int = Field(default=10, ge=1)
    relearning_rate: float = Field(default=1e-3, gt=0)
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Number of resamples for each confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
