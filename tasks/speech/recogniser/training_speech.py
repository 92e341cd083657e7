"""Training speech of a recogniser: recordings of a manifest, or sentences that are synthesised on the fly."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from torch import Tensor

from tasks.corpora.text_lines import read_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.languages.word_languages import spoken_languages
from tasks.speech.audio.audio_file import read_audio
from tasks.speech.audio.manifest import read_manifest, recording_facts
from tasks.speech.audio.settings import SynthesisSettings
from tasks.speech.audio.utterance_lines import given_languages, placed_languages
from tasks.speech.recogniser.recogniser import log_mel
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserTraining
from tasks.speech.synthesis.synthetic_corpus import speak_drawn, why_not_spoken
from tasks.training.stage import hash_of

_SHORTEST_SECONDS = 0.1
"""No word is shorter, and the encoder needs a few frames."""
_SPOKEN_CHARACTERS_PER_SECOND = 20.0
"""Rough rate of synthesised speech; the true length is known only after synthesis."""
_VOICE_STREAM = 7
"""Separates the random numbers of voices from those of order and augmentation."""
Line = TypeVar("Line")


class TrainingSpeech:
    """Utterances with their words; their sound may change from epoch to epoch."""

    texts: list[str]
    """Normalised words of each utterance."""
    languages: list[Sequence[str | None]] | None = None
    """The language of each word, if there are several; another value for a word without a language."""
    seconds: np.ndarray
    """Length of each utterance, at least approximately; float64 (N,)."""
    synthetic: bool
    """Whether some of it is synthesised."""
    identity: str
    """A hash of the speech and its settings."""

    def __init__(self, settings: FeatureSettings) -> None:
        self.settings = settings
        self.left_out: Counter[str] = Counter()
        """Counts of unused utterances by reason."""

    def used(self, lines: Iterable[Line], why_not: Callable[[Line], str | None]) -> list[Line]:
        """The lines without a reason to leave them out; the others are counted."""
        reasons = [(line, why_not(line)) for line in lines]
        self.left_out.update(reason for _, reason in reasons if reason)
        return [line for line, reason in reasons if not reason]

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor | None:
        """Log-mel features (T, bands) of one utterance in an epoch, not normalised; the same at every request.

        ``is_quiet``: without added noise. ``None`` if there is no sound.
        """
        raise NotImplementedError


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
        super().__init__(features)
        self._maximum_seconds = training.maximum_seconds
        read = read_manifest(manifest)
        timed = zip(read, recording_facts(read, math.inf), strict=True)
        chosen = self.used(timed, lambda one: _why_not(len(normalise(one[0].text)), one[1].seconds, training))
        if not chosen:
            raise SpeechError(
                f"manifest {str(manifest)!r}: none of the {self.left_out.total()} utterances is of a length that the "
                "settings allow (minimum_words, maximum_words, maximum_seconds)"
            )
        utterances = [utterance for utterance, _ in chosen]
        self.texts = [" ".join(normalise(utterance.text)) for utterance in utterances]
        self.seconds = np.array([facts.seconds for _, facts in chosen])
        self.synthetic = any(utterance.synthetic for utterance in utterances)
        if languages:
            inferred = spoken_languages(languages, [utterance.text for utterance in utterances])
            given = given_languages(manifest, languages)
            self.languages = [
                placed_languages(utterance.text, given.get(utterance.utterance_id, of_tokens))[1]
                for utterance, of_tokens in zip(utterances, inferred, strict=True)
            ]
        ids = [utterance.utterance_id for utterance in utterances]
        self.identity = hash_of(self.settings.model_dump_json(), ids, self.texts, self.seconds)
        self._audio = [utterance.audio for utterance in utterances]
        self._cached: dict[int, Tensor] = {}

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor:
        """Log-mel features (T, bands) of a recording, the same in every epoch."""
        if index not in self._cached:
            rate = self.settings.sample_rate
            samples = read_audio(self._audio[index], rate, maximum_seconds=self._maximum_seconds)
            self._cached[index] = log_mel(samples, self.settings).half()
        # Rounded the first time too, so that a resumed run has the same numbers.
        return self._cached[index].float()


def _why_not(words: int, seconds: float, training: RecogniserTraining) -> str | None:
    """The reason why an utterance of so many words and seconds is left out, or ``None``."""
    reasons = {
        "without_words": not words,
        "too_few_words": words < training.minimum_words,
        "too_many_words": words > training.maximum_words,
        "too_long": seconds > training.maximum_seconds,
        "too_short": seconds < _SHORTEST_SECONDS,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


class SyntheticSpeech(TrainingSpeech):
    """Sentences of a text, synthesised on request; nothing is stored."""

    synthetic = True

    def __init__(
        self, text: str | Path, synthesis: SynthesisSettings, features: FeatureSettings, training: RecogniserTraining
    ) -> None:
        """Raises ``SpeechError`` if no sentence can be spoken."""
        super().__init__(features)
        self.synthesis, self.seed = synthesis, training.seed
        lowest = max(synthesis.minimum_words, training.minimum_words)
        highest = min(synthesis.maximum_words, training.maximum_words)
        sentences = self.used(read_lines(text), lambda line: why_not_spoken(line, lowest, highest))
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
        self.identity = hash_of(self.settings.model_dump_json(), synthesis.model_dump_json(), sentences)

    def features(self, index: int, epoch: int, *, is_quiet: bool = False) -> Tensor | None:
        """Log-mel features (T, bands) of a sentence in one epoch; ``None`` if the synthesiser produces nothing."""
        generator = np.random.default_rng([self.seed, epoch, index, _VOICE_STREAM])
        of_tokens = self._of_tokens[index] if self._of_tokens else None
        rate = self.settings.sample_rate
        samples, _ = speak_drawn(
            self._sentences[index], of_tokens, self.synthesis, generator, sample_rate=rate, is_quiet=is_quiet
        )
        spoken = len(samples) >= _SHORTEST_SECONDS * rate
        return log_mel(samples, self.settings) if spoken else None
