"""One synthetic utterance: speech at the recogniser's sample rate, of one loudness, in noise.

Cheap enough to be made anew in each epoch of a training run, in the workers of a ``DataLoader`` too.
"""

from typing import TYPE_CHECKING

from tasks.speech.synthesis.espeak import SAMPLE_RATE, Synthesiser, Voice
from tasks.speech.synthesis.noise import Noise, make_noise
from tasks.speech.synthesis.spoken_text import spoken_text

if TYPE_CHECKING:
    import numpy
    import torch

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

    from tasks.speech.audio.resampling import resample

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
