"""Sentences that are spoken anew in every epoch, by voices, at speeds and in noise that are drawn for each of them."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
from torch import Tensor

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.speech.recogniser.features import log_mel
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserTraining
from tasks.speech.recogniser.training_speech import SHORTEST_SECONDS, estimated_seconds
from tasks.speech.synthesis.espeak import Synthesiser
from tasks.speech.synthesis.noise import draw_noise
from tasks.speech.synthesis.settings import SynthesisSettings
from tasks.speech.synthesis.spoken_text import why_not_spoken
from tasks.speech.synthesis.utterance_synthesis import synthesise
from tasks.speech.synthesis.voices import draw_voice

_VOICE_STREAM = 7
"""Keeps the random numbers of voices apart from those of order and augmentation."""


class SyntheticSpeech:
    """Sentences of a text, spoken when they are asked for; nothing is kept."""

    synthetic = True

    def __init__(
        self, text: str | Path, synthesis: SynthesisSettings, features: FeatureSettings, training: RecogniserTraining
    ) -> None:
        """Raises ``SpeechError`` where no sentence is left to speak, ``ResourceError`` without a synthesiser."""
        self.synthesis, self.settings, self.seed = synthesis, features, training.seed
        self.left_out: Counter[str] = Counter()
        lowest = max(synthesis.minimum_words, training.minimum_words)
        highest = min(synthesis.maximum_words, training.maximum_words)
        sentences = []
        for line in read_lines(text):
            reason = why_not_spoken(line, lowest, highest)
            if reason is None:
                sentences.append(line)
            else:
                self.left_out[reason] += 1
        if not sentences:
            raise SpeechError(
                f"text {str(text)!r}: none of its {self.left_out.total()} lines can be spoken (they have digits, no "
                f"words, or not {lowest} to {highest} words)"
            )
        if synthesis.sentences is not None and synthesis.sentences < len(sentences):
            generator = np.random.default_rng(synthesis.seed)
            drawn = np.sort(generator.choice(len(sentences), synthesis.sentences, replace=False))
            self.left_out["not_drawn"] = len(sentences) - len(drawn)
            sentences = [sentences[i] for i in drawn]
        self._sentences = sentences
        self.texts = [" ".join(normalise(sentence)) for sentence in sentences]
        self.seconds = np.array([estimated_seconds(text) for text in self.texts])
        self._synthesiser = Synthesiser()

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor | None:
        """Log-mel features (T, bands) of a sentence as it is spoken in one epoch; the same whenever it is asked for.

        ``is_quiet``: without its noise. ``None`` where the synthesiser says nothing, which is counted.
        """
        generator = np.random.default_rng([self.seed, epoch, index, _VOICE_STREAM])
        voice = draw_voice(self.synthesis, generator)
        samples = synthesise(
            self._sentences[index],
            voice,
            None if is_quiet else draw_noise(self.synthesis, generator),
            generator,
            sample_rate=self.settings.sample_rate,
            synthesiser=self._synthesiser,
        )
        if len(samples) < SHORTEST_SECONDS * self.settings.sample_rate:
            self.left_out["not_spoken"] += 1
            return None
        return log_mel(samples, self.settings)

    def identity(self) -> str:
        """A hash of the sentences and of how they are spoken."""
        digest = hashlib.sha256((self.settings.model_dump_json() + self.synthesis.model_dump_json()).encode())
        for sentence in self._sentences:
            digest.update(f"{sentence}\n".encode())
        return digest.hexdigest()
