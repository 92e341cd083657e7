"""Settings of the language model and its evaluation (paper 3.3, 4.2).

``language_model.kind`` says which of the sections ``transformer``, ``ngram`` and ``causal_lm`` is read; the
Transformer's own settings stand beside, in ``architecture``, ``pretraining`` and ``adaptation``.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings
from tasks.settings.seeds import Seed

Kind = Literal["transformer", "ngram", "causal_lm"]
"""``transformer``: the paper's, trained here on words; ``ngram``: modified Kneser-Ney, in seconds; ``causal_lm``: a
causal language model of Hugging Face's, adapted with LoRA or in full."""


MarkerUse = Literal["none", "token", "ignore", "remove", "drop"]
"""How markers of a text are treated: ``none``, it is plain text and has none; ``token``, a marker is a token like any
other (Baseline0); ``ignore``, a marker is context but no target (Baseline1); ``remove``, a marker is taken out of its
line (plain redaction); ``drop``, lines with a marker are left out."""

MOST_EPOCHS = 100_000
"""Passes over a training text; nobody means more."""


MANY_UNKNOWN = 0.3
"""Share of unknown words in a text from which on its perplexity says little, and a reader must know of it."""


class VocabularySettings(Settings):
    """The word vocabulary, built on the generic corpus alone: no private word can be in it."""

    size: int = Field(default=20_000, ge=8)
    """Words and special tokens together (paper: about 85,000)."""
    minimum_count: int = Field(default=2, ge=1)
    """Rarer words stay out."""


class ArchitectureSettings(Settings):
    """A Transformer decoder with tied embeddings."""

    layers: int = Field(default=3, ge=1, le=1000)
    """Paper: 6."""
    heads: int = Field(default=4, ge=1)
    """Paper: 12."""
    width: int = Field(default=128, ge=8, le=65_536)
    """Units; paper: 768."""
    maximum_tokens: int = Field(default=128, ge=8, le=65_536)
    """Positions; longer sentences are divided into windows, none is cut."""
    context: Literal["sentence", "packed"] = "sentence"
    """``sentence``: one sentence a row; ``packed``: several in a row, none of which sees another, so that little is
    padding."""
    positions: Literal["learned", "rotary", "switching", "switching_pairs"] = Field(
        default="learned", exclude_if=lambda value: value == "learned"
    )
    """How a word knows its place. ``learned``: a vector for each place; ``rotary``: queries and keys are turned by an
    angle in proportion to it; ``switching``: the same, and at each switch point the turn changes its direction;
    ``switching_pairs``: the same, and how far a word stands behind the one before it is learned for each pair of
    languages. All but ``learned`` need the context ``sentence``."""
    languages: Languages = Field(default_factory=list, exclude_if=lambda value: not value)
    """The languages that the text mixes, such as [en, es], told by the words to the left. The two last kinds of
    positions go by them; with the others the model is told which language to expect next (state fusion)."""
    parts: int = Field(default=1, ge=1, exclude_if=lambda value: value == 1)
    """Equal parts of the width that norms go by; several in a model that is several in one (``joined``)."""
    steering: int = Field(default=0, ge=0, exclude_if=lambda value: not value)
    """Rank of the map that the last hidden states are steered by (LM-Steer); 0: none."""

    @model_validator(mode="after")
    def _positions_have_what_they_need(self) -> Self:
        if self.positions.startswith("switching") and not self.languages:
            raise ValueError(f"positions {self.positions!r} go by languages; give them, such as [en, es]")
        if self.positions != "learned" and (self.context != "sentence" or self.width // self.heads % 2):
            raise ValueError(
                f"positions {self.positions!r} with context {self.context!r} and {self.width // self.heads!r} units a "
                "head: they need the context sentence and an even number of units"
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
    """Targets per optimiser step, about, over all devices."""
    accumulate: int = Field(default=1, ge=1)
    """Parts that each such batch is computed in, one after the other, where it is too large for the memory."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps with a rising learning rate; a cosine brings it down after."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decay of the weight matrices, as in AdamW; biases and norms have none."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the hidden units that are left out at random, after the embedding and after each branch of a layer."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    validate_every_steps: int = Field(default=0, ge=0)
    """Optimiser steps between two validations; 0: one after each epoch."""
    patience: int = Field(default=0, ge=0)
    """Training stops after so many validations in a row without a smaller loss, and the weights of the smallest one are
    kept; 0: train to the end and keep the last."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of matrix products; ``auto``: bfloat16 where the processor has it."""
    seed: Seed = 1
    """Seed of the pretraining; adaptation takes the cell's seed."""


class DifferentialPrivacy(Settings):
    """DP-SGD (Abadi et al. 2016): what the weights say of one unit of the text is bounded. The settings of training
    beside it are not read."""

    epsilon: float = Field(ge=0.1, le=100)
    """Of differential privacy, for a unit that is in the text or not."""
    delta: float = Field(default=1e-5, gt=0, lt=1)
    """Chance that epsilon does not hold; well below one in the number of units."""
    unit: Literal["line", "document"] = "line"
    """Whose words are protected: those of a line, or of all lines of a document (``--documents``)."""
    clipping_norm: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient of a unit's summed loss. With Adam its size matters little, as long as nearly all
    gradients are longer."""
    batch_units: int = Field(default=512, ge=1)
    """Units in a step, on average; of a few hundred documents a tenth or so."""
    epochs: float = Field(default=2.0, gt=0, le=MOST_EPOCHS)
    """Passes over the text, on average; may be a fraction."""
    learning_rate: float = Field(default=1e-2, gt=0)
    """Peak learning rate of Adam; a line leads up to it, and a cosine to 0."""


class AdaptationSettings(TrainingSettings):
    """Optimisation of an adaptation."""

    private: DifferentialPrivacy | None = None
    """Train with differential privacy; ``null``: without. ``compare.private`` sets it for cells beside Oracle."""

    @model_validator(mode="after")
    def _private_does_not_stop_early(self) -> Self:
        if self.private is not None and self.patience:
            raise ValueError(f"private with patience={self.patience!r}: DP-SGD does not stop early; set patience to 0")
        return self


class LanguageFactorSettings(Settings):
    """The language of the next word is predicted first, then the word (``language_factors``)."""

    codes: Languages = Field(min_length=2)
    """The languages that the text mixes, such as [en, es]."""
    weight: float | None = Field(default=None, ge=0, le=1)
    """Of the languages of the words to the left against the word model's own opinion of the next language: 0 is the
    word model as it is without languages; ``null``: both have the exponent under which the validation text is most
    probable."""
    switch_weight: float = Field(default=0.0, ge=0, le=1000)
    """So many times more a word at a switch point counts when the exponents are found: 0 makes the whole text most
    probable, more gives the other language more of a chance."""


class TransformerSettings(Settings):
    """What is found beside the weights; ``architecture``, ``pretraining`` and ``adaptation`` say the rest. The
    section has to be there, since ``dvc.yaml`` makes each stage depend on the section of its kind."""

    languages: LanguageFactorSettings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of text that mixes them; ``null``: the model predicts words alone."""


class NgramSettings(Settings):
    """An n-gram model with modified Kneser-Ney smoothing."""

    order: int = Field(default=3, ge=1, le=6)
    """Longest n-gram, in words."""
    generic_weight: float | None = Field(default=None, ge=0, le=1)
    """Weight of the generic model in an adapted one; ``null``: the weight under which the validation text is most
    probable."""
    languages: LanguageFactorSettings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of text that mixes them; ``null``: the model knows nothing of languages."""


class LoraAdaptation(Settings):
    """An update of low rank in place of new weights."""

    rank: int = Field(default=8, ge=1)
    """r: rank of the update of each matrix."""
    alpha: float = Field(default=16.0, gt=0)
    """The update is scaled by alpha / r."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Share of the update's inputs that are left out at random."""
    target_modules: list[str] | None = None
    """Names of the layers that are updated; ``null`` takes all linear ones but the head. A head that shares its weight
    with the embeddings cannot be among them."""


class CausalAdaptation(Settings):
    """How a causal language model is trained on a text."""

    lora: LoraAdaptation | None = LoraAdaptation()
    """``null`` trains every weight."""
    epochs: float = Field(default=1.0, gt=0, le=MOST_EPOCHS)
    """Passes over the training text; may be a fraction."""
    batch_tokens: int = Field(default=512, ge=16)
    """Pieces of words per optimiser step, about."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps with a rising learning rate; a cosine brings it down after."""
    weight_decay: float = Field(default=0.0, ge=0)
    """As in AdamW."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""


class CausalLanguageModelSettings(Settings):
    """A causal language model of Hugging Face's in the Transformer's place."""

    model: str
    """Hub name (``gpt2``, ``meta-llama/Llama-2-7b-hf``), folder, or ``package:NAME/FOLDER`` inside a pip package."""
    gguf_file: str | None = None
    """File in that folder, where the weights are in GGUF."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What the model computes in: ``auto`` is bfloat16 on a GPU and float32 on a processor, there with products in
    bfloat16 while it is trained, where the processor has them."""
    adaptation: CausalAdaptation = CausalAdaptation()
    """How it is adapted."""


class LanguageModelSettings(Settings):
    """``language_model`` in ``params.yaml``."""

    kind: Kind
    """What is adapted and measured downstream; each kind has a section of its own, and the others are not read."""
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
        # dvc.yaml makes the stages depend on the section by its name, so a default that is not written down is no help.
        if self.kind not in self.model_fields_set:
            raise ValueError(f"kind is {self.kind!r}, and there is no section {self.kind!r}; give it, if only as {{}}")
        return self


def _says_nothing(settings: TransformerSettings) -> bool:
    return settings.languages is None


class TransformerPretraining(Settings):
    """What ``pretrain`` takes of ``language_model`` for a Transformer."""

    kind: Literal["transformer"] = "transformer"
    architecture: ArchitectureSettings = ArchitectureSettings()
    pretraining: TrainingSettings = TrainingSettings()
    transformer: TransformerSettings = Field(default=TransformerSettings(), exclude_if=_says_nothing)


class NgramPretraining(Settings):
    """What ``pretrain`` takes for an n-gram model."""

    kind: Literal["ngram"] = "ngram"
    ngram: NgramSettings = NgramSettings()


class CausalPretraining(Settings):
    """What ``pretrain`` takes for a causal language model."""

    kind: Literal["causal_lm"] = "causal_lm"
    causal_lm: CausalLanguageModelSettings


PretrainSettings = Annotated[TransformerPretraining | NgramPretraining | CausalPretraining, Field(discriminator="kind")]


class TransformerAdaptation(Settings):
    """What ``adapt`` takes of ``language_model`` for a Transformer."""

    kind: Literal["transformer"] = "transformer"
    adaptation: AdaptationSettings = AdaptationSettings()
    transformer: TransformerSettings = Field(default=TransformerSettings(), exclude_if=_says_nothing)

    @property
    def goes_by_valid(self) -> bool:
        """Whether the model that comes of it depends on the validation text, which else is measured alone."""
        return self.adaptation.patience > 0 or self.transformer.languages is not None

    @model_validator(mode="after")
    def _weights_alone_are_private(self) -> Self:
        if self.adaptation.private is not None and self.transformer.languages is not None:
            raise ValueError(
                f"private with transformer.languages {self.transformer.languages.codes!r}: the languages of words are "
                "counted in the text, which epsilon does not cover; leave one of the two out"
            )
        return self


class NgramAdaptation(Settings):
    """What ``adapt`` takes for an n-gram model."""

    kind: Literal["ngram"] = "ngram"
    ngram: NgramSettings = NgramSettings()
    goes_by_valid: ClassVar[bool] = True


class CausalLanguageModelAdaptation(Settings):
    """What ``adapt`` takes for a causal language model."""

    kind: Literal["causal_lm"] = "causal_lm"
    causal_lm: CausalLanguageModelSettings
    goes_by_valid: ClassVar[bool] = False


AdaptSettings = Annotated[
    TransformerAdaptation | NgramAdaptation | CausalLanguageModelAdaptation, Field(discriminator="kind")
]


class EvaluationSettings(Settings):
    """``evaluation`` in ``params.yaml``."""

    bootstrap_samples: int = Field(default=1000, ge=100, le=100_000)
    """Resamples of the test sentences for the confidence interval."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the confidence interval."""
    seed: Seed = 1
    """Seed of the resampling."""
    markers: Literal["in_vocabulary", "renormalised"] = "in_vocabulary"
    """Markers such as [MASK] keep what a model gives them, as in the paper, or all other tokens share it."""
    frequency_classes: list[int] = Field(default=[100, 1000, 10_000])
    """Rising ranks in generic text that divide known words into classes of frequency."""
    languages: Languages = Field(default_factory=list)
    """The languages that the text mixes, such as [en, es]: known words of each, at switch points and by how mixed their
    line is are measured apart; empty: none are."""

    @field_validator("frequency_classes")
    @classmethod
    def _check_rising(cls, limits: list[int]) -> list[int]:
        if limits != sorted({limit for limit in limits if limit > 0}):
            raise ValueError("give ranks from 1 on that rise, such as [100, 1000, 10000]")
        return limits
