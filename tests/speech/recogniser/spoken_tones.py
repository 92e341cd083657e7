"""A language that is whistled: each of four words is a tone, so that a tiny recogniser learns it in seconds."""

from pathlib import Path

import numpy as np
import soundfile

from tasks.speech.audio.manifest import Utterance, write_manifest

TONES = {"la": 500.0, "mi": 1000.0, "so": 2000.0, "do": 4000.0}
RATE = 16_000

TINY = {
    "features": {"bands": 20},
    "augmentation": {"frequency_masks": 0, "time_masks": 0},
    "units": {"size": 12},
    "architecture": {
        "encoding": 32,
        "reduction_input": 8,
        "layers": 1,
        "heads": 2,
        "feed_forward": 64,
        "left_context_frames": 4,
        "predictor_width": 16,
    },
    "training": {"epochs": 3.0, "batch_seconds": 4.0, "learning_rate": 0.01, "precision": "float32"},
}
"""Settings of a recogniser of 30,000 weights."""


def whistle(words: list[str]) -> np.ndarray:
    """The words as tones of 0.2 s with 0.1 s of quiet noise behind each, float32."""
    generator = np.random.default_rng(len(words))
    parts = []
    for word in words:
        times = np.arange(int(0.2 * RATE)) / RATE
        parts += [0.3 * np.sin(2 * np.pi * TONES[word] * times), np.zeros(int(0.1 * RATE))]
    signal = np.concatenate([np.zeros(800), *parts])
    return (signal + 0.001 * generator.standard_normal(len(signal))).astype(np.float32)


def write_tones(folder: Path, utterances: int, seed: int) -> Path:
    """A manifest of whistled sentences of one to four words; returns its path."""
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number in range(utterances):
        words = [str(word) for word in generator.choice(list(TONES), generator.integers(1, 5))]
        path = folder / f"{number}.wav"
        soundfile.write(path, whistle(words), RATE)
        entries.append(Utterance(f"tone-{number}", path, " ".join(words), synthetic=True))
    write_manifest(folder / "manifest.jsonl", entries)
    return folder / "manifest.jsonl"
