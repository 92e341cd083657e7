"""Settings of decoding with Whisper."""

from pydantic import Field, model_validator

from tasks.settings.base import Settings


class WhisperSettings(Settings):
    """How recordings are decoded to n-best lists."""

    beam_width: int = Field(default=10, ge=1)
    """Hypotheses that the search keeps at each step."""
    nbest: int = Field(default=10, ge=1)
    """Hypotheses of each utterance that are written, at most ``beam_width``; spellings of the same words count once."""
    length_penalty: float = Field(default=1.0, ge=0, le=2)
    """Power of the length that log-probabilities are divided by where hypotheses are ranked: 1 as in Whisper's own
    code; with 0 scores are plain sums, and the shortest hypotheses win."""
    language: str = "en"
    """Code of the language that is spoken, such as ``en`` or ``de``; ``en`` for an English-only model."""
    no_digits: bool = False
    """Whether Whisper may write no digits and no signs that are read aloud (%, $, &), so that it spells them out, as
    the references of read-speech corpora do."""
    maximum_pieces: int = Field(default=224, ge=1)
    """Pieces of words that one window of 30 s may have; 224 as in Whisper's own code."""
    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longest recording that is accepted; what is longer than Whisper's 30 s is cut into windows at quiet places."""
    batch_size: int = Field(default=4, ge=1)
    """Windows that are decoded at once, of similar length."""

    @model_validator(mode="after")
    def _check_nbest(self) -> "WhisperSettings":
        if self.nbest > self.beam_width:
            raise ValueError(f"nbest {self.nbest} is more than beam_width {self.beam_width}; a search finds no more")
        return self
