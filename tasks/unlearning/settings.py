"""The section ``unlearning``: ways to forget, and how they are compared."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings.base import Settings
from tasks.unlearning.methods import AnyUnlearning

MOST_BITS = 33.0
"""Of exposure: no secret is above the number of secrets there are, three of some 2,000 words."""


class UnlearningSettings(Settings):
    """What is planted, how far a method may go, and the methods by name."""

    methods: dict[str, AnyUnlearning] = Field(default_factory=dict)
    """Ways to forget by name; ``compare.unlearned`` says which are compared."""
    budget: float = Field(default=0.05, ge=0)
    """Of a method's strengths the last is taken whose perplexity on valid text is at most so much above that of the
    model before, as a share of it; the first one, if none is."""
    technique: str = "allow_list"
    """Masking technique, one of ``compare.techniques``, that says which words of ordinary lines are private; of planted
    lines the planted words are."""
    fill: str = "unigram"
    """Filling method without a filler, a key of ``filling``, that fills the private words anew."""
    copies: int = Field(default=3, ge=1)
    """How often each line is filled anew."""
    secrets: int = Field(default=20, ge=2)
    """Planted sentences of each kind and each number of repetitions."""
    repetitions: list[Annotated[int, Field(ge=1)]] = Field(default=[1, 4, 16], min_length=1)
    """How often they stand in the text."""
    references: int = Field(default=1000, ge=255)
    """Sentences of the same form that are never trained on, by which a planted one is ranked."""
    lines: int = Field(default=400, ge=20)
    """Ordinary lines that are to be forgotten, drawn by lot; as many others are never trained on."""
    unit: Literal["line", "document"] = "line"
    """What is drawn: lines, or all lines of documents, as many documents as it takes."""
    requests: int = Field(default=1, ge=1)
    """In so many parts all that is to be forgotten is asked for, one after the other: each time the model forgets that
    has forgotten what was asked before. A planted sentence is of one part, however often it stands in the text."""
    relearned_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of the planted sentences that an attacker knows, and trains the model on again."""
    relearning_steps: int = Field(default=10, ge=1)
    relearning_rate: float = Field(default=1e-3, gt=0)
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples for each confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
