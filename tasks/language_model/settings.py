"""Settings of the language model and its evaluation (paper 3.3, 4.2).

``language_model.kind`` selects the section to read: ``transformer``, ``ngram`` or ``causal_lm``. Other settings of the
Transformer are in ``architecture``, ``pretraining`` and ``adaptation``.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed

Kind = Literal["transformer", "ngram", "causal_lm"]
"""``transformer``: the paper's model, trained here on words; ``ngram``: modified Kneser-Ney, trained in seconds;
``causal_lm``: a causal language model of Hugging Face, adapted with LoRA or in full."""


MarkerUse = Literal["none", "token", "ignore", "remove", "drop"]
"""Treatment of markers in a text. ``none``: the text is plain and has no markers. ``token``: a marker is an ordinary
token (Baseline0). ``ignore``: a marker is context but no target (Baseline1). ``remove``: markers are removed from their
lines (plain redaction). ``drop``: lines with a marker are left out."""

MOST_EPOCHS = 100_000
"""Upper limit of passes over a training text."""


MANY_UNKNOWN = 0.3
"""Share of unknown words above which a perplexity says little; a report then warns."""


class VocabularySettings(Settings):
    """The word vocabulary. It is built on the generic corpus alone, so it holds no private word."""

    size: int = Field(default=20_000, ge=8)
    """Number of words and special tokens together (paper: about 85,000)."""
    minimum_count: int = Field(default=2, ge=1)
    """Least count of a word; rarer words are left out."""


class ArchitectureSettings(Settings):
    """A Transformer decoder with tied embeddings."""

    layers: int = Field(default=3, ge=1, le=1000)
    """Number of layers (paper: 6)."""
    heads: int = Field(default=4, ge=1)
    """Number of attention heads (paper: 12)."""
    width: int = Field(default=128, ge=8, le=65_536)
    """Units of a hidden state (paper: 768)."""
    maximum_tokens: int = Field(default=128, ge=8, le=65_536)
    """Number of positions; longer sentences are divided into windows, and none is cut."""
    context: Literal["sentence", "packed"] = "sentence"
    """``sentence``: one sentence a row; ``packed``: several sentences a row, with less padding. No sentence attends to
    another."""
    positions: Literal["learned", "rotary", "switching", "switching_pairs"] = Field(
        default="learned", exclude_if=lambda value: value == "learned"
    )
    """Position encoding. ``learned``: a vector for each position. ``rotary``: queries and keys are turned by an angle
    in proportion to the position. ``switching``: as rotary, and the turn reverses at each switch point.
    ``switching_pairs``: as rotary, with a learned distance between neighbours for each pair of languages. All but
    ``learned`` need ``context: sentence``."""
    languages: Languages = Field(default_factory=list, exclude_if=lambda value: not value)
    """Languages that the text mixes, such as [en, es]; the words to the left give each word's language. The positions
    ``switching`` and ``switching_pairs`` use them. With other positions, the expected next language is an input (state
    fusion)."""
    parts: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)
    """Number of equal parts of the width, each normalised separately; above 1 in a joined model (``joined``)."""
    steering: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Rank of the map that steers the last hidden states (LM-Steer); 0: no map."""

    @model_validator(mode="after")
    def _positions_have_what_they_need(self) -> Self:
        if self.positions.startswith("switching") and not self.languages:
            raise ValueError(f"positions {self.positions!r} need languages; give languages such as [en, es]")
        if self.positions != "learned" and (self.context != "sentence" or self.width // self.heads % 2):
            raise ValueError(
                f"positions {self.positions!r} with context {self.context!r} and {self.width // self.heads!r} units a "
                "head: they need the context 'sentence' and an even number of units a head"
            )
        return self

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(
                f"width {self.width!r} cannot be divided among {self.heads!r} heads; give a width that is a multiple "
                "of the heads"
            )
        return self


class TrainingSettings(Settings):
    """Optimisation of one training run."""

    epochs: float = Field(default=1.0, gt=0, le=MOST_EPOCHS)
    """Passes over the training text; may be a fraction."""
    batch_tokens: int = Field(default=512, ge=16)
    """Approximate number of targets per optimiser step, over all devices."""
    accumulate: int = Field(default=1, ge=1)
    """Number of parts that each batch is computed in, one after the other, to fit into the memory."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps with a rising learning rate; a cosine lowers it afterwards."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decay of the weight matrices, as in AdamW; biases and norms have none."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout rate of the hidden units, after the embedding and after each branch of a layer."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    validate_every_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two validations; 0: one after each epoch."""
    patience: int = Field(default=0, ge=0)
    """Validations in a row without a smaller loss after which training stops. The weights of the smallest loss are then
    used. 0: train to the end and use the last weights."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of matrix products; ``auto``: bfloat16 where the processor supports it."""
    seed: Seed = 1
    """Seed of the pretraining; adaptation uses the cell's seed."""


class DifferentialPrivacy(Settings):
    """DP-SGD (Abadi et al. 2016): bounds the influence of one unit of the text on the weights. These settings replace
    the other training settings."""

    epsilon: float = Field(ge=0.1, le=100)
    """Privacy loss epsilon for the presence or absence of one unit."""
    delta: float = Field(default=1e-5, gt=0, lt=1)
    """Probability that epsilon does not hold; choose it well below one in the number of units."""
    unit: Literal["line", "document"] = "line"
    """Protected unit: a line, or all lines of a document (``--documents``)."""
    clipping_norm: float = Field(default=1.0, gt=0)
    """Largest norm of a unit's gradient (of its summed loss). With Adam its size matters little, as long as nearly all
    gradients are clipped."""
    batch_units: int = Field(default=512, ge=1)
    """Expected number of units in a step; for a few hundred documents, about a tenth of them."""
    epochs: float = Field(default=2.0, gt=0, le=MOST_EPOCHS)
    """Expected passes over the text; may be a fraction."""
    learning_rate: float = Field(default=1e-2, gt=0)
    """Peak learning rate of Adam; it rises linearly, then falls to 0 along a cosine."""


class AdaptationSettings(TrainingSettings):
    """Optimisation of an adaptation."""

    private: DifferentialPrivacy | None = None
    """Train with differential privacy; ``null``: without. ``compare.private`` sets it for all cells but Oracle."""

    @model_validator(mode="after")
    def _private_does_not_stop_early(self) -> Self:
        if self.private is not None and self.patience:
            raise ValueError(f"private with patience={self.patience!r}: DP-SGD does not stop early; set patience to 0")
        return self


class LanguageFactorSettings(Settings):
    """The model predicts the language of the next word first, then the word (``language_factors``)."""

    codes: Languages = Field(min_length=2)
    """Languages that the text mixes, such as [en, es]."""
    weight: float | None = Field(default=None, ge=0, le=1)
    """Weight of the languages of the words to the left against the word model's own next-language distribution. 0: the
    word model without languages; ``null``: both exponents are fitted to the validation text (maximum likelihood)."""
    switch_weight: float = Field(default=0.0, ge=0, le=1000)
    """Extra weight of a word at a switch point when the exponents are fitted. 0 maximises the likelihood of the whole
    text; larger values favour a change of language."""


class TransformerSettings(Settings):
    """Settings beyond ``architecture``, ``pretraining`` and ``adaptation``. The section must exist, since ``dvc.yaml``
    makes each stage depend on the section of its kind."""

    languages: LanguageFactorSettings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Languages of a text that mixes several; ``null``: the model predicts words alone."""


class NgramSettings(Settings):
    """An n-gram model with modified Kneser-Ney smoothing."""

    order: int = Field(default=3, ge=1, le=6)
    """Length of the longest n-gram, in words."""
    generic_weight: float | None = Field(default=None, ge=0, le=1)
    """Weight of the generic model in an adapted one; ``null``: fitted to the validation text (maximum likelihood)."""
    languages: LanguageFactorSettings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Languages of a text that mixes several; ``null``: the model predicts words alone."""


class LoraAdaptation(Settings):
    """Low-rank updates of frozen weights (LoRA)."""

    rank: int = Field(default=8, ge=1)
    """Rank r of the update of each matrix."""
    alpha: float = Field(default=16.0, gt=0)
    """Scale of the update, which is multiplied by alpha / r."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Dropout rate of the update's inputs."""
    target_modules: list[str] | None = None
    """Names of the layers to update; ``null``: all linear layers but the head. A head that shares its weight with the
    embeddings cannot be among them."""


class CausalAdaptation(Settings):
    """How a causal language model is trained on a text."""

    lora: LoraAdaptation | None = LoraAdaptation()
    """Low-rank update; ``null`` trains every weight."""
    epochs: float = Field(default=1.0, gt=0, le=MOST_EPOCHS)
    """Passes over the training text; may be a fraction."""
    batch_tokens: int = Field(default=512, ge=16)
    """Approximate number of subword tokens per optimiser step."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps with a rising learning rate; a cosine lowers it afterwards."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay of AdamW."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""


class CausalLanguageModelSettings(Settings):
    """A causal language model of Hugging Face, used instead of the Transformer."""

    model: str
    """Hub name (``gpt2``, ``meta-llama/Llama-2-7b-hf``), folder, or ``package:NAME/FOLDER`` inside a pip package."""
    gguf_file: str | None = None
    """File of the weights in that folder, if they are in GGUF."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of the model. ``auto``: bfloat16 on a GPU, float32 on a processor. On a processor, training uses
    bfloat16 products where they are supported."""
    adaptation: CausalAdaptation = CausalAdaptation()
    """Settings of its adaptation."""


class LanguageModelSettings(Settings):
    """``language_model`` in ``params.yaml``."""

    kind: Kind
    """Kind of the downstream model. Each kind has its own section; the other sections are not read."""
    vocabulary: VocabularySettings
    architecture: ArchitectureSettings
    pretraining: TrainingSettings
    adaptation: AdaptationSettings
    transformer: TransformerSettings
    ngram: NgramSettings = NgramSettings()
    causal_lm: CausalLanguageModelSettings | None = None
    """Needed where ``kind`` is ``causal_lm``."""

    @model_validator(mode="after")
    def _has_section_of_its_kind(self) -> Self:
        # dvc.yaml makes the stages depend on the section by its name, so the section must be written out.
        if self.kind not in self.model_fields_set:
            raise ValueError(f"kind is {self.kind!r}, and section {self.kind!r} is missing; add it, if only as {{}}")
        return self


def _says_nothing(settings: TransformerSettings) -> bool:
    return settings.languages is None


class TransformerPretraining(Settings):
    """Settings of ``language_model`` that ``pretrain`` reads for a Transformer."""

    kind: Literal["transformer"] = "transformer"
    architecture: ArchitectureSettings = ArchitectureSettings()
    pretraining: TrainingSettings = TrainingSettings()
    transformer: TransformerSettings = Field(default=TransformerSettings(), exclude_if=_says_nothing)


class NgramStage(Settings):
    """Settings that ``pretrain`` and ``adapt`` read for an n-gram model."""

    kind: Literal["ngram"] = "ngram"
    ngram: NgramSettings = NgramSettings()
    goes_by_valid: ClassVar[bool] = True


class CausalStage(Settings):
    """Settings that ``pretrain`` and ``adapt`` read for a causal language model."""

    kind: Literal["causal_lm"] = "causal_lm"
    causal_lm: CausalLanguageModelSettings
    goes_by_valid: ClassVar[bool] = False


PretrainSettings = Annotated[TransformerPretraining | NgramStage | CausalStage, Field(discriminator="kind")]


class TransformerAdaptation(Settings):
    """Settings of ``language_model`` that ``adapt`` reads for a Transformer."""

    kind: Literal["transformer"] = "transformer"
    adaptation: AdaptationSettings = AdaptationSettings()
    transformer: TransformerSettings = Field(default=TransformerSettings(), exclude_if=_says_nothing)

    @property
    def goes_by_valid(self) -> bool:
        """Whether the resulting model depends on the validation text, rather than only being measured on it."""
        return self.adaptation.patience > 0 or self.transformer.languages is not None

    @model_validator(mode="after")
    def _weights_alone_are_private(self) -> Self:
        if self.adaptation.private is not None and self.transformer.languages is not None:
            raise ValueError(
                f"private with transformer.languages {self.transformer.languages.codes!r}: the languages of words are "
                "counted in the text, which epsilon does not cover; leave one of the two out"
            )
        return self


AdaptSettings = Annotated[TransformerAdaptation | NgramStage | CausalStage, Field(discriminator="kind")]


class EvaluationSettings(Settings):
    """``evaluation`` in ``params.yaml``."""

    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Number of resamples of the test sentences for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
    markers: Literal["in_vocabulary", "renormalised"] = "in_vocabulary"
    """``in_vocabulary``: markers such as [MASK] take their share of the probability, as in the paper. ``renormalised``:
    all other tokens share it."""
    frequency_classes: list[int] = Field(default=[100, 1000, 10_000])
    """Rising frequency ranks in generic text that divide known words into classes."""
    languages: Languages = Field(default_factory=list)
    """Languages that the text mixes, such as [en, es]. Known words are then also measured by language, at switch points
    and by how mixed their line is."""

    @field_validator("frequency_classes")
    @classmethod
    def _check_rising(cls, limits: list[int]) -> list[int]:
        if limits != sorted({limit for limit in limits if limit > 0}):
            raise ValueError(f"{limits!r}: give rising ranks from 1 on, such as [100, 1000, 10000]")
        return limits
