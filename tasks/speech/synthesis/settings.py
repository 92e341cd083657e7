"""Settings of synthetic speech. The paper has none: its recordings are LibriSpeech and WSJ."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed
from tasks.speech.synthesis.espeak import PITCH_LIMITS, RATE_LIMITS

VoiceSet = Literal["train", "dev", "test"]
NoiseKind = Literal["white", "pink", "babble"]


class SynthesisSettings(Settings):
    """Which sentences are spoken, by which voices, in what noise."""

    sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences, drawn from the text by the seed; ``null`` for all."""
    minimum_words: int = Field(default=1, ge=1)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=40, ge=1)
    """Longer sentences are left out and counted."""
    voice_set: VoiceSet = "test"
    """``train``, ``dev`` or ``test``: sets of voices that share no accent and no timbre."""
    minimum_rate: int = Field(default=140, ge=RATE_LIMITS[0], le=RATE_LIMITS[1])
    """Slowest speech, in words a minute."""
    maximum_rate: int = Field(default=200, ge=RATE_LIMITS[0], le=RATE_LIMITS[1])
    """Fastest speech, in words a minute."""
    minimum_pitch: int = Field(default=35, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Lowest shift of the voice's own pitch, on eSpeak NG's scale from 0 to 99; 50 leaves it."""
    maximum_pitch: int = Field(default=65, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Highest shift of the voice's own pitch."""
    minimum_pitch_range: int = Field(default=30, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Least movement of the pitch, on eSpeak NG's scale from 0 (monotone) to 99."""
    maximum_pitch_range: int = Field(default=70, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Most movement of the pitch."""
    noise_kinds: list[NoiseKind] = Field(default=["white", "pink", "babble"])
    """Kinds of noise, one of which is drawn for each utterance; ``babble`` has the spectrum of speech and moves like
    it. Empty for no noise."""
    minimum_signal_to_noise: float = Field(default=10.0, ge=-20, le=100)
    """Loudest noise, in dB below the speech."""
    maximum_signal_to_noise: float = Field(default=25.0, ge=-20, le=100)
    """Softest noise, in dB below the speech."""
    sample_rate: int = Field(default=16000, ge=8000, le=48000)
    """Samples in a second of what is written."""
    seed: Seed = 1
    """Seed of the sentences, voices and noise."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        for name in ("words", "rate", "pitch", "pitch_range", "signal_to_noise"):
            low, high = getattr(self, f"minimum_{name}"), getattr(self, f"maximum_{name}")
            if low > high:
                raise ValueError(f"minimum_{name} ({low!r}) is above maximum_{name} ({high!r})")
        return self
