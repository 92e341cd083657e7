"""A recogniser with random weights, too small to hear anything, noise for it, and what stands for its units."""

from pathlib import Path

import numpy as np
import soundfile
import torch
from torchaudio.functional import resample

from tasks.speech.audio.manifest import Utterance, write_manifest
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import train_units
from tasks.speech.synthesis.espeak import Voice, speak

RATE = 16_000
FEATURES = FeatureSettings(bands=8)
ARCHITECTURE = RecogniserArchitecture(
    encoding=16, reduction_input=4, layers=1, heads=2, feed_forward=16, predictor_width=16
)


def random_recogniser(*, emits: bool = False, **sizes: int) -> Recogniser:
    """A recogniser of 13 units; ``emits``: a unit every few frames, where new weights hardly choose between symbols.
    ``sizes``: other values of the architecture."""
    architecture = ARCHITECTURE.model_copy(update=sizes)
    units = train_units(["the dog and the cat", "a cat and a dog"] * 4, 13)
    model = make_model(architecture, FEATURES, len(units) + 1, seed=1).eval()
    if emits:
        with torch.no_grad():
            model.joiner.linear.weight.mul_(3)
            model.joiner.linear.bias[-1] += 1.5
    description = RecogniserDescription(features=FEATURES, architecture=architecture, origin="random", synthetic=True)
    return Recogniser(model, units, FeatureStatistics(torch.zeros(8), torch.ones(8)), description)


def spoken(rate: int = RATE) -> np.ndarray:
    """5.4 seconds of synthetic speech (samples,), float32."""
    voice = Voice("en-US", "Andy", 170, 50, 50)
    said = "good morning, I would like to change my flight to the next day, please. How much is it?"
    samples = torch.from_numpy(speak(said, voice)[0].astype(np.float32) / 2**15)
    return resample(samples, 22_050, rate).numpy()


def write_noise(folder: Path, **seconds: float) -> Path:
    """The manifest of recordings of noise of these lengths, in which somebody says "a dog"."""
    generator = np.random.default_rng(1)
    utterances = []
    for name, length in seconds.items():
        path = folder / f"{name}.wav"
        soundfile.write(path, 0.1 * generator.standard_normal(round(RATE * length)), RATE, subtype="FLOAT")
        utterances.append(Utterance(name, path, "a dog", synthetic=True))
    write_manifest(folder / "manifest.jsonl", utterances)
    return folder / "manifest.jsonl"


class Pieces:
    """Units by what they spell, as the recogniser has them; the first one spells nothing."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def decode(self, ids) -> str:
        return " ".join("".join(self.pieces[i] for i in ids if i).replace("\u2581", " ").split())
