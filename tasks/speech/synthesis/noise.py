"""Noise to speak in, made from random numbers: white, pink, and one that resembles many people talking."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.speech.synthesis.settings import NoiseKind, SynthesisSettings

if TYPE_CHECKING:
    import numpy

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
