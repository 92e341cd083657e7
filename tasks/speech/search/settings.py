"""Settings of the beam search."""

from typing import Literal

from pydantic import Field

from tasks.settings.base import Settings


class SearchSettings(Settings):
    """How the best unit sequences of an utterance are looked for."""

    beam_width: int = Field(default=5, ge=1)
    """Hypotheses that are kept after each frame."""
    step_max_symbols: int = Field(default=10, ge=1)
    """Most units that one frame may emit: a guard against a model that never emits blank (torchaudio: 100)."""
    nbest: int = Field(default=5, ge=1)
    """Hypotheses that are handed out for each utterance; no more than the beam is wide come out."""
    temperature: float = Field(default=1.0, gt=0)
    """The joiner's scores are divided by it; above 1 units become more alike in probability."""
    length_normalisation: Literal["always", "final", "never"] = "always"
    """Whether scores are divided by the number of units plus 2 when hypotheses are compared: ``always``, after each
    frame and at the end, as torchaudio does; ``final``, at the end alone; or ``never``."""
    batch_utterances: int = Field(default=512, ge=1)
    """Utterances that are searched at once, those of like length together; it changes speed and memory alone."""
