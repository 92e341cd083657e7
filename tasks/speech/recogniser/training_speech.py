"""Training speech of a recogniser: recordings of a manifest, or sentences that are synthesised on the fly."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.languages.word_languages import spoken_languages
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import Utterance, read_manifest, recording_seconds
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.audio.utterance_lines import given_languages, placed_languages
from tasks.speech.recogniser.recogniser import log_mel
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserTraining
from tasks.speech.synthesis.espeak import Synthesiser
from tasks.speech.synthesis.synthetic_corpus import draw_noise, draw_voices, synthesise, why_not_spoken

SHORTEST_SECONDS = 0.1
"""No word is shorter, and the encoder needs a few frames."""
_SPOKEN_CHARACTERS_PER_SECOND = 20.0
"""Rough rate of synthesised speech; the true length is known only after synthesis."""


class TrainingSpeech(ABC):
    """Utterances with their words; their sound may change from epoch to epoch."""

    texts: list[str]
    """Normalised words of each utterance."""
    languages: list[Sequence[str | None]] | None = None
    """The language of each word, if there are several; another value for a word without a language."""
    seconds: np.ndarray
    """Length of each utterance, at least approximately; float64 (N,)."""
    left_out: Counter[str]
    """Counts of unused utterances by reason."""
    synthetic: bool
    """Whether some of it is synthesised."""
    settings: FeatureSettings
    """Settings of the features."""

    @abstractmethod
    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor | None:
        """Log-mel features (T, bands) of one utterance in an epoch, not normalised; ``is_quiet``: without added noise.

        ``None`` if there is no sound.
        """

    @abstractmethod
    def identity(self) -> str:
        """A hash of the speech and its settings."""


class RecordedSpeech(TrainingSpeech):
    """The recordings of a manifest. Features stay in memory (float16; an hour of 40 bands: 29 MB)."""

    def __init__(
        self,
        manifest: str | Path,
        features: FeatureSettings,
        training: RecogniserTraining,
        languages: Sequence[str] = (),
    ) -> None:
        """Raises ``SpeechError`` that lists all problems of the manifest or the recordings, or if no utterance is
        usable."""
        self.settings = features
        self.left_out: Counter[str] = Counter()
        self._maximum_seconds = training.maximum_seconds
        worded: list[tuple[Utterance, str]] = []
        for utterance in read_manifest(manifest):
            words = normalise(utterance.text)
            if reason := wrong_length(words, training):
                self.left_out[reason] += 1
            else:
                worded.append((utterance, " ".join(words)))
        lengths = recording_seconds((utterance for utterance, _ in worded), math.inf)
        chosen: list[Utterance] = []
        self.texts: list[str] = []
        seconds = []
        for (utterance, text), length in zip(worded, lengths, strict=True):
            if length > training.maximum_seconds or length < SHORTEST_SECONDS:
                self.left_out["too_long" if length > training.maximum_seconds else "too_short"] += 1
                continue
            chosen.append(utterance)
            self.texts.append(text)
            seconds.append(length)
        if not chosen:
            raise SpeechError(
                f"manifest {str(manifest)!r}: none of the {self.left_out.total()} utterances is of a length that the "
                "settings allow (minimum_words, maximum_words, maximum_seconds)"
            )
        self.utterances = chosen
        self.seconds = np.array(seconds)
        self.synthetic = any(utterance.synthetic for utterance in chosen)
        if languages:
            inferred = spoken_languages(languages, [utterance.text for utterance in chosen])
            given = given_languages(manifest, languages)
            self.languages = [
                placed_languages(utterance.text, given.get(utterance.utterance_id, of_tokens))[1]
                for utterance, of_tokens in zip(chosen, inferred, strict=True)
            ]
        self._cached: list[Tensor | None] = [None] * len(chosen)

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor:
        """Log-mel features (T, bands) of a recording, the same in every epoch."""
        cached = self._cached[index]
        if cached is None:
            audio = self.utterances[index].audio
            samples = read_audio(audio, self.settings.sample_rate, maximum_seconds=self._maximum_seconds)
            cached = self._cached[index] = log_mel(samples, self.settings).half()
        # Rounded the first time too, so that a resumed run has the same numbers.
        return cached.float()

    def identity(self) -> str:
        """A hash of ids, texts, lengths and feature settings."""
        digest = hashlib.sha256(self.settings.model_dump_json().encode())
        for utterance, text, seconds in zip(self.utterances, self.texts, self.seconds, strict=True):
            digest.update(f"{utterance.utterance_id}\0{text}\0{seconds}\n".encode())
        return digest.hexdigest()


def wrong_length(words: Sequence[str], training: RecogniserTraining) -> str | None:
    """The reason why an utterance of these words is left out, or ``None``."""
    if not words:
        return "without_words"
    if len(words) < training.minimum_words:
        return "too_few_words"
    return "too_many_words" if len(words) > training.maximum_words else None


_VOICE_STREAM = 7
"""Separates the random numbers of voices from those of order and augmentation."""


class SyntheticSpeech(TrainingSpeech):
    """Sentences of a text, synthesised on request; nothing is stored."""

    synthetic = True

    def __init__(
        self, text: str | Path, synthesis: SynthesisSettings, features: FeatureSettings, training: RecogniserTraining
    ) -> None:
        """Raises ``SpeechError`` if no sentence can be spoken, ``ResourceError`` without a synthesiser."""
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
        self._of_tokens: list[list[str]] | None = None
        if synthesis.languages:
            self._of_tokens = list(spoken_languages(synthesis.languages, sentences))
            self.languages = [placed_languages(*each)[1] for each in zip(sentences, self._of_tokens, strict=True)]
        self.seconds = np.array([0.3 + len(text) / _SPOKEN_CHARACTERS_PER_SECOND for text in self.texts])
        self._synthesiser = Synthesiser()

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor | None:
        """Log-mel features (T, bands) of a sentence in one epoch, the same at every request.

        ``is_quiet``: without noise. ``None`` if the synthesiser produces nothing.
        """
        generator = np.random.default_rng([self.seed, epoch, index, _VOICE_STREAM])
        voices = draw_voices(self.synthesis, generator, self._synthesiser)
        samples = synthesise(
            self._sentences[index],
            next(iter(voices.values())) if self._of_tokens is None else [voices[of] for of in self._of_tokens[index]],
            None if is_quiet else draw_noise(self.synthesis, generator),
            generator,
            sample_rate=self.settings.sample_rate,
            synthesiser=self._synthesiser,
        )
        spoken = len(samples) >= SHORTEST_SECONDS * self.settings.sample_rate
        return log_mel(samples, self.settings) if spoken else None

    def identity(self) -> str:
        """A hash of the sentences and of the synthesis settings."""
        digest = hashlib.sha256((self.settings.model_dump_json() + self.synthesis.model_dump_json()).encode())
        for sentence in self._sentences:
            digest.update(f"{sentence}\n".encode())
        return digest.hexdigest()
