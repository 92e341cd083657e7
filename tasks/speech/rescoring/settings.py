"""Settings of how hypotheses are found, chosen and counted: search, fusion, rescoring, word error rates, Whisper."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed


class SearchSettings(Settings):
    """How the best unit sequences of an utterance are looked for."""

    beam_width: int = Field(default=5, ge=1)
    """Hypotheses that are kept after each frame."""
    step_max_symbols: int = Field(default=10, ge=1)
    """Most units that one frame may emit: a guard against a model that never emits blank (torchaudio: 100)."""
    nbest: int = Field(default=5, ge=1)
    """Hypotheses that are handed out for each utterance; no more than the beam is wide come out."""
    temperature: float = Field(default=1.0, gt=0)
    """The joiner's scores are divided by it; above 1 units become more alike in probability."""
    length_normalisation: Literal["always", "final", "never"] = "always"
    """Whether scores are divided by the number of units plus 2 when hypotheses are compared: ``always``, after each
    frame and at the end, as torchaudio does; ``final``, at the end alone; or ``never``."""
    language_bias: dict[str, float | None] = Field(default={}, exclude_if=lambda bias: not bias)
    """By language of a recogniser whose units tell theirs: what is added to the log-probabilities of its units, in
    nats, before they are made to add up again; ``null``: the language never comes out."""
    batch_utterances: int = Field(default=512, ge=1)
    """Utterances that are searched at once, those of like length together; it changes speed and memory alone."""


class WordErrorSettings(Settings):
    """``speech.word_errors`` in ``params.yaml``: how the intervals are made, and what is told apart."""

    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the test utterances for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
    languages: Languages = Field(default_factory=list)
    """The languages that the references mix, such as [en, es]: errors by language, at switches and by the distance to
    one are measured apart; empty: none are."""


class OverlapLimits(Settings):
    """How much of the test a language model may have seen in training, where its text is named."""

    maximum_shared_sentences: float | None = Field(default=None, ge=0, le=1)
    """Share of the test references that may stand in the training text; ``null``: any, the share is only reported."""
    maximum_shared_8_grams: float | None = Field(default=None, ge=0, le=1)
    """Share of the test references' stretches of eight words that may stand in the training text; ``null``: any."""

    @property
    def limited(self) -> bool:
        """Whether one of the limits is set."""
        return (self.maximum_shared_sentences, self.maximum_shared_8_grams) != (None, None)


def _not_negative(weights: list[float]) -> list[float]:
    if min(weights) < 0:
        raise ValueError("give weights from 0 on")
    return weights


class NbestSource(Settings):
    """N-best lists of a recogniser: one part of ``speech.nbest.*`` in ``params.yaml``."""

    source: SourcePath
    """File of JSON lines, plain or compressed: ``{"utterance_id", "reference", "hypotheses": [{"text", "score"}]}``."""
    utterances: int | None = Field(default=None, ge=1)
    """At most so many utterances, drawn by the seed whatever the recogniser made of them; ``null`` for all."""
    seed: Seed = 1
    """Seed of the draw."""


class NbestCorpus(Settings):
    """N-best lists of recordings in the language of one private corpus."""

    dev: NbestSource
    """What the weights are tuned on."""
    test: NbestSource
    """What is measured, once."""


class RescoringSettings(OverlapLimits):
    """``speech.rescoring`` in ``params.yaml``: what is tuned on the development lists, and how."""

    hypotheses_at_most: int = Field(default=100, ge=1)
    """Hypotheses of each list that are looked at, the best ones by the recogniser."""
    lm_weights: list[float] = Field(default=[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0], min_length=1)
    """Weights of the language model's log-probability beside the recogniser's score: the grid."""
    insertion_bonuses: list[float] = Field(default=[-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0], min_length=1)
    """What each word of a hypothesis is worth, in units of the recogniser's score: the grid."""
    unknown_word_bonuses: list[float] = Field(default=[0.0, -1.0, -2.0, -4.0], min_length=1)
    """What each word outside the language model's vocabulary is worth, at most 0: a model that took many words for one
    unknown token finds that token probable."""
    source_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3, 0.5, 0.7], min_length=1)
    """Weights of the source model's log-probability, which is subtracted where there is such a model: the grid. A large
    one is the density ratio, an n-gram model of low order LODR."""
    source_model: str | None = None
    """Language model of the recogniser's own training text, which is subtracted: folder, ``package:NAME/FOLDER`` or
    name on the hub; ``null``: none."""
    resamples: int = Field(default=200, ge=0)
    """Draws of the development utterances; each weight is the mean of what is best on each draw. 0: what is best on the
    utterances as they are."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What a causal language model computes in; ``auto`` is bfloat16 on a GPU and float32 on a processor, where
    bfloat16 is 1.5 times as fast and moves the score of a hypothesis by 0.2 nats. A source model of another kind
    computes as it always does."""

    @field_validator("lm_weights", "insertion_bonuses", "unknown_word_bonuses", "source_weights")
    @classmethod
    def _check_grid(cls, values: list[float]) -> list[float]:
        if len(set(values)) != len(values) or 0.0 not in values:
            raise ValueError("give numbers that differ, 0 among them, such as [0.0, 0.1, 0.2]")
        return sorted(values)

    _weights = field_validator("lm_weights", "source_weights")(_not_negative)

    @field_validator("unknown_word_bonuses")
    @classmethod
    def _check_bonuses(cls, values: list[float]) -> list[float]:
        if max(values) > 0:
            raise ValueError("give numbers of at most 0")
        return values


class RescoreSettings(Settings):
    """What the command ``rescore`` takes from ``speech``."""

    rescoring: RescoringSettings = RescoringSettings()
    word_errors: WordErrorSettings = WordErrorSettings()


InternalModel = Literal["none", "density_ratio", "lodr", "zero_encoder"]


class FusionSettings(OverlapLimits):
    """What is added to the transducer's scores, and the weights that are tried on dev."""

    lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], min_length=1)
    """Weights of the language model to try; the one in the middle is decoded with first."""
    insertion_bonuses: list[float] = Field(default=[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], min_length=1)
    """Nats for each word to try: a language model makes every word cost something, and words are lost without."""
    internal_lm: InternalModel = "none"
    """What stands for the language that the transducer has learned from its own training text, and is taken off:
    ``density_ratio``, a word-level model of that text (McDermott et al. 2019); ``lodr``, a bigram of its units (Zheng
    et al. 2022); ``zero_encoder``, its own predictor and joiner without a signal (Variani et al. 2020)."""
    internal_lm_weights: list[float] = Field(default=[0.0, 0.1, 0.2, 0.3], min_length=1)
    """Weights of the internal model to try, where there is one."""
    unknown_log_share: float = Field(default=-9.2, le=0)
    """Logarithm of the share of the unknown word's probability that one word outside the vocabulary has: about one in
    ten thousand."""
    tuning_rounds: int = Field(default=2, ge=1)
    """Times that dev is decoded with the weights that look best so far."""
    resamples: int = Field(default=200, ge=0)
    """Draws of the utterances of dev; each weight is the mean of those that are best on a draw. 0: what is best on the
    utterances as they are."""

    _weights = field_validator("lm_weights", "internal_lm_weights")(_not_negative)

    @model_validator(mode="after")
    def _has_no_weights_without_use(self) -> Self:
        # Settings that were read and written again name all their fields: only other weights than the usual were given.
        usual = type(self).model_fields["internal_lm_weights"].default
        if self.internal_lm == "none" and any(self.internal_lm_weights) and self.internal_lm_weights != usual:
            raise ValueError("internal_lm is 'none', so internal_lm_weights have no use; leave them out")
        return self


class TuneFusionSettings(Settings):
    """What the command ``tune-fusion`` takes from ``speech``."""

    search: SearchSettings = SearchSettings()
    fusion: FusionSettings = FusionSettings()


class FuseSettings(TuneFusionSettings):
    """What the command ``fuse`` takes from ``speech``."""

    word_errors: WordErrorSettings = WordErrorSettings()


class WhisperSettings(Settings):
    """How recordings are decoded to n-best lists."""

    beam_width: int = Field(default=10, ge=1)
    """Hypotheses that the search keeps at each step."""
    nbest: int = Field(default=10, ge=1)
    """Hypotheses of each utterance that are written, at most ``beam_width``; spellings of the same words count once."""
    length_penalty: float = Field(default=1.0, ge=0, le=2)
    """Power of the length that log-probabilities are divided by where hypotheses are ranked: 1 as in Whisper's own
    code; with 0 scores are plain sums, and the shortest hypotheses win."""
    language: str = "en"
    """Code of the language that is spoken, such as ``en`` or ``de``; ``en`` for an English-only model."""
    no_digits: bool = False
    """Whether Whisper may write no digits and no signs that are read aloud (%, $, &), so that it spells them out, as
    the references of read-speech corpora do."""
    maximum_pieces: int = Field(default=224, ge=1)
    """Pieces of words that one window of 30 s may have; 224 as in Whisper's own code."""
    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longest recording that is accepted; what is longer than Whisper's 30 s is cut into windows at quiet places."""
    batch_size: int = Field(default=4, ge=1)
    """Windows that are decoded at once, of similar length."""
    vocabulary: str | None = Field(default=None, exclude_if=lambda path: path is None)
    """The ``.tiktoken`` file that belongs to a ``.pt`` file; ``null``: that of the installed package openai-whisper."""

    @model_validator(mode="after")
    def _check_nbest(self) -> "WhisperSettings":
        if self.nbest > self.beam_width:
            raise ValueError(f"nbest {self.nbest} is more than beam_width {self.beam_width}; a search finds no more")
        return self
