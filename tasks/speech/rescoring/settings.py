"""Settings of search, fusion, rescoring, word error rates and Whisper."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed


class SearchSettings(Settings):
    """Beam search for the best unit sequences of an utterance."""

    beam_width: int = Field(default=5, ge=1)
    """Hypotheses that remain in the beam after each frame."""
    step_max_symbols: int = Field(default=10, ge=1)
    """Maximum of units that one frame may emit; guards against a model that never emits blank (torchaudio: 100)."""
    nbest: int = Field(default=5, ge=1)
    """Hypotheses that are returned for each utterance; at most ``beam_width``."""


class WordErrorSettings(Settings):
    """``speech.word_errors`` in ``params.yaml``: confidence intervals and groups of words."""

    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the test utterances for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
    languages: Languages = Field(default_factory=list)
    """Languages that the references mix, such as [en, es]. Errors are then also measured by language, at switches and
    by the distance from a switch; empty: they are not."""


def _not_negative(weights: list[float]) -> list[float]:
    if min(weights) < 0:
        raise ValueError("give weights from 0 on")
    return weights


class NbestSource(Settings):
    """N-best lists of a recogniser: one part of ``speech.nbest.*`` in ``params.yaml``."""

    source: SourcePath
    """JSON lines, plain or compressed: ``{"utterance_id", "reference", "hypotheses": [{"text", "score"}]}``; or a file
    or folder as ESPnet, Kaldi, NeMo and others write it."""
    utterances: int | None = Field(default=None, ge=1)
    """At most so many utterances, drawn by the seed independently of the recogniser's output; ``null`` for all."""
    seed: Seed = 1
    """Seed of the draw."""


class NbestCorpus(Settings):
    """N-best lists of recordings in the language of one private corpus."""

    dev: NbestSource
    """Lists that the weights are tuned on."""
    test: NbestSource
    """Lists that are measured, once."""


class RescoringSettings(Settings):
    """``speech.rescoring`` in ``params.yaml``: tuning on the development lists."""

    hypotheses_at_most: int = Field(default=100, ge=1)
    """Hypotheses of each list that are used, the recogniser's best."""
    lm_weights: list[float] = Field(default=[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0], min_length=1)
    """Grid of weights of the language model's log-probability, added to the recogniser's score."""
    insertion_bonuses: list[float] = Field(default=[-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0], min_length=1)
    """Grid of bonuses for each word of a hypothesis, in units of the recogniser's score."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of a causal language model; ``auto`` is bfloat16 on a GPU and float32 on a processor. There bfloat16 is
    1.5 times as fast and moves the score of a hypothesis by 0.2 nats."""

    @field_validator("lm_weights", "insertion_bonuses")
    @classmethod
    def _check_grid(cls, values: list[float]) -> list[float]:
        if len(set(values)) != len(values) or 0.0 not in values:
            raise ValueError("give numbers that differ, 0 among them, such as [0.0, 0.1, 0.2]")
        return sorted(values)

    _weights = field_validator("lm_weights")(_not_negative)


class RescoreSettings(Settings):
    """Settings of the command ``rescore`` from the section ``speech``."""

    rescoring: RescoringSettings = RescoringSettings()
    word_errors: WordErrorSettings = WordErrorSettings()


InternalModel = Literal["none", "zero_encoder"]


class FusionSettings(Settings):
    """Parts that are added to the transducer's score, and the grid of weights that is tried on dev."""

    lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], min_length=1)
    """Weights of the language model to try; dev is decoded with the middle one first."""
    insertion_bonuses: list[float] = Field(default=[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], min_length=1)
    """Bonuses in nats for each word to try; without one, a language model makes every word cost, and words are lost."""
    internal_lm: InternalModel = "none"
    """Internal language model of the transducer, which fusion subtracts. ``zero_encoder``: its own predictor and joiner
    without a signal (Variani et al. 2020)."""
    internal_lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3], min_length=1)
    """Weights of the internal model to try, if there is one."""
    tuning_rounds: int = Field(default=2, ge=1)
    """Number of times that dev is decoded with the best weights so far."""

    _weights = field_validator("lm_weights", "internal_lm_weights")(_not_negative)


class TuneFusionSettings(Settings):
    """Settings of the command ``tune-fusion`` from the section ``speech``."""

    search: SearchSettings = SearchSettings()
    fusion: FusionSettings = FusionSettings()


class FuseSettings(TuneFusionSettings):
    """Settings of the command ``fuse`` from the section ``speech``."""

    word_errors: WordErrorSettings = WordErrorSettings()


class WhisperSettings(Settings):
    """Decoding of recordings to n-best lists."""

    beam_width: int = Field(default=20, ge=2)
    """Hypotheses in the beam at each step. More than ``nbest``, since many differ in punctuation only; each needs
    memory of its own (18 MB for the smallest model, 490 MB for the largest)."""
    nbest: int = Field(default=10, ge=1)
    """Hypotheses of each utterance that are written, at most ``beam_width``; spellings of the same words are merged."""
    language: str = "en"
    """Code of the spoken language, such as ``en`` or ``de``; ``en`` for an English-only model."""
    no_digits: bool = False
    """Whether Whisper must spell out digits and signs that are read aloud (%, $, &), as the references of read-speech
    corpora do."""
    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longest recording that is accepted; recordings longer than Whisper's 30 s are cut in pauses."""

    @model_validator(mode="after")
    def _check_nbest(self) -> "WhisperSettings":
        if self.nbest > self.beam_width:
            raise ValueError(f"nbest {self.nbest} is more than beam_width {self.beam_width}; a search finds no more")
        return self
