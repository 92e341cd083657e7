"""Which voices speak what is trained on, tuned on and tested on: no accent and no timbre is in two sets.

Left out are eSpeak NG's robots, echoes, whispers, croaks and cartoon voices, and timbres that are another's copy.
Timbres of one family, such as the variants of one formant table, stay in one set.
"""

from typing import TYPE_CHECKING

from tasks.speech.synthesis.espeak import Voice
from tasks.speech.synthesis.settings import SynthesisSettings, VoiceSet

if TYPE_CHECKING:
    import numpy

ACCENTS: dict[VoiceSet, tuple[str, ...]] = {
    "train": ("en-US", "en", "en-GB-scotland", "en-029", "en-GB-x-gbcwmd"),
    "dev": ("en-GB-x-gbclan",),
    "test": ("en-US-nyc", "en-GB-x-rp"),
}
"""American, British, Scottish, Caribbean, West Midlands; Lancaster; New York, Received Pronunciation."""

TIMBRES: dict[VoiceSet, tuple[str, ...]] = {
    "train": tuple(
        (
            "Alex Alicia Andrea Andy Annie Denis Jacky Lee Marco Mario Michael Mike antonio david ed edward f1 f3 "
            "gustave ian john m2 m4 m5 m6 m8 max miguel pablo rob robert sandro steph travis victor"
        ).split()
    ),
    "dev": ("f5", "linda", "m1", "paul"),
    "test": ("Gene", "f2", "f4", "m3", "m7", "shelby"),
}
"""Files of ``voices/!v``."""


def draw_voice(settings: SynthesisSettings, generator: "numpy.random.Generator") -> Voice:
    """A speaker of the set with rate, pitch and range of pitch, each drawn evenly between the settings' limits."""
    return Voice(
        accent=str(generator.choice(ACCENTS[settings.voice_set])),
        timbre=str(generator.choice(TIMBRES[settings.voice_set])),
        rate=int(generator.integers(settings.minimum_rate, settings.maximum_rate, endpoint=True)),
        pitch=int(generator.integers(settings.minimum_pitch, settings.maximum_pitch, endpoint=True)),
        pitch_range=int(generator.integers(settings.minimum_pitch_range, settings.maximum_pitch_range, endpoint=True)),
    )
