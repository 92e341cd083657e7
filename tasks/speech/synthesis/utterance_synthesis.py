"""One synthetic utterance: speech at the recogniser's sample rate, of one loudness, in noise.

Cheap enough to be made anew in each epoch of a training run, in the workers of a ``DataLoader`` too.

Of the voices that speak what is trained on, tuned on and tested on, no accent and no timbre is in two sets. Left out
are eSpeak NG's robots, echoes, whispers, croaks and cartoon voices, and timbres that are another's copy. Timbres of one
family, such as the variants of one formant table, stay in one set.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.speech.audio.settings import NoiseKind, SynthesisSettings, VoiceSet
from tasks.speech.synthesis.espeak import SAMPLE_RATE, Synthesiser, Voice
from tasks.speech.synthesis.synthetic_corpus import spoken_text

if TYPE_CHECKING:
    import numpy
    import torch

_SPEECH_CORNER = 500.0
"""Hz above which the long-term spectrum of speech falls, by about 9 dB an octave (Byrne et al. 1994)."""
_LOWEST = 50.0
"""Hz below which there is no noise: there is no speech to cover."""
_SYLLABLES = 4.0
"""Hz: how fast the loudness of speech moves."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise of a kind and how loud it is."""

    kind: NoiseKind
    signal_to_noise: float
    """Mean power of the utterance over that of the noise, in dB."""


def draw_noise(settings: SynthesisSettings, generator: "numpy.random.Generator") -> Noise | None:
    """A kind and a signal-to-noise ratio, drawn evenly; ``None`` where the settings have no kind."""
    if not settings.noise_kinds:
        return None
    kind: NoiseKind = settings.noise_kinds[int(generator.integers(len(settings.noise_kinds)))]
    low, high = settings.minimum_signal_to_noise, settings.maximum_signal_to_noise
    return Noise(kind, float(generator.uniform(low, high)))


def make_noise(kind: NoiseKind, samples: int, sample_rate: int, generator: "numpy.random.Generator") -> "numpy.ndarray":
    """Noise of mean power 1, float32 (samples,).

    ``white`` has the same power in each Hz, ``pink`` in each octave. ``babble`` has the long-term spectrum of speech,
    and its loudness moves as fast as that of speech.
    """
    import numpy
    from scipy import fft

    white = generator.standard_normal(samples, dtype=numpy.float32)
    if kind == "white":
        noise = white
    else:
        size = fft.next_fast_len(samples, real=True)
        frequencies = numpy.maximum(fft.rfftfreq(size, 1 / sample_rate), _LOWEST).astype(numpy.float32)
        if kind == "pink":
            gain = (_LOWEST / frequencies) ** 0.5
        else:
            gain = numpy.minimum(1.0, _SPEECH_CORNER / frequencies) ** 1.5
        gain[0] = 0.0
        noise = fft.irfft(fft.rfft(white, size) * gain, size)[:samples]
        if kind == "babble":
            noise = noise * _loudness(samples, sample_rate, generator)
    power = float(numpy.mean(numpy.square(noise, dtype=numpy.float64)))
    return (noise / max(power, 1e-12) ** 0.5).astype(numpy.float32)


def _loudness(samples: int, sample_rate: int, generator: "numpy.random.Generator") -> "numpy.ndarray":
    """A gain that moves at the rate of syllables: random points, joined by straight lines."""
    import numpy

    points = max(2, int(samples / sample_rate * 2 * _SYLLABLES) + 2)
    gains = generator.uniform(0.3, 1.7, points).astype(numpy.float32)
    return numpy.interp(numpy.linspace(0, points - 1, samples), numpy.arange(points), gains).astype(numpy.float32)


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


_LEVEL = -26.0
"""Mean power of the speech in dB below full scale, the level at which telephone speech is usually measured."""
_SILENCE_BEFORE, _SILENCE_AFTER = 0.1, 0.2
"""Seconds. A recording does not begin and end with the first and last sound, and a streaming recogniser that has heard
the last one needs some more frames to say it."""


def synthesise(
    text: str,
    voice: Voice,
    noise: Noise | None,
    generator: "numpy.random.Generator",
    *,
    sample_rate: int = 16000,
    synthesiser: Synthesiser | None = None,
) -> "torch.Tensor":
    """A sentence spoken, float32 (samples,) in [-1, 1] at ``sample_rate`` Hz; empty where nothing can be spoken.

    ``generator`` makes the noise and nothing else: without noise it is not used. The words are those of
    ``normalise(text)``. Raises what ``Synthesiser.speak`` raises.
    """
    import numpy
    import torch

    from tasks.speech.audio.audio_file import resample

    raw = (synthesiser or Synthesiser()).speak(spoken_text(text), voice)
    if not raw.any():
        return torch.zeros(0)
    speech = resample(torch.from_numpy(raw.astype(numpy.float32) / 32768), SAMPLE_RATE, sample_rate)
    speech = speech * (10 ** (_LEVEL / 20) / speech.square().mean().sqrt())
    silence = (round(_SILENCE_BEFORE * sample_rate), round(_SILENCE_AFTER * sample_rate))
    speech = torch.nn.functional.pad(speech, silence)
    if noise is not None:
        amplitude = 10 ** ((_LEVEL - noise.signal_to_noise) / 20)
        speech += amplitude * torch.from_numpy(make_noise(noise.kind, len(speech), sample_rate, generator))
    return speech.clamp_(-1.0, 1.0)
