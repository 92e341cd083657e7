"""The section ``audit``: how hard each cell is attacked."""

from typing import Annotated

from pydantic import Field

from tasks.filling.settings import SHIPPED_FILLER
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class AuditSettings(Settings):
    """Sizes of the attacks; which cells are attacked stands in ``compare.fills``."""

    places: int = Field(default=1000, ge=50)
    """Masked words that the attacker guesses."""
    tagged_lines: int = Field(default=3000, ge=50)
    """Lines in which another tagger looks for private words, and whoever looks for substitutes."""
    attacker: str = SHIPPED_FILLER
    """The masked language model that guesses masked words: hub name, folder, or ``package:NAME/FOLDER``."""
    canaries: int = Field(default=40, ge=2)
    """Canaries for each family and each number of repetitions; of a short text one for each 200 lines."""
    repetitions: list[Annotated[int, Field(ge=2)]] = Field(default=[4, 16], min_length=1)
    """How often such canaries stand in the training text of the twin."""
    references: int = Field(default=4095, ge=255)
    """Sentences of the same form that are never trained on, by which a canary is ranked: with 4,095 exposure is at most
    12 bits."""
    coins: int = Field(default=1000, ge=100)
    """Canaries that are in the text once or not at all, by the toss of a coin; of a short text one for each 8 lines."""
    guessed_share: float = Field(default=0.2, gt=0, le=1)
    """Share of the coins that the bound on epsilon guesses."""
    held_out_share: float = Field(default=0.25, gt=0, lt=1)
    """Share of the lines, drawn by coin, that the twin is not trained on: they are not members."""
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples for each confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
    seed: Seed = 1
    """Seed of canaries, coins and samples: the same for all cells, so that their figures compare."""
