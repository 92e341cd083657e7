"""Settings of the recogniser: ``speech.recogniser`` in ``params.yaml`` (paper 4.2)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, refuse_out_of_order
from tasks.settings.seeds import Seed
from tasks.speech.audio.settings import SynthesisSettings


class FeatureSettings(Settings):
    """Log-mel features, as torchaudio's published transducers compute them."""

    sample_rate: int = Field(default=16_000, ge=8_000)
    """Samples per second; recordings of another rate are resampled."""
    window_samples: int = Field(default=400, ge=16)
    """Samples of a frame's Fourier transform (25 ms)."""
    hop_samples: int = Field(default=160, ge=16)
    """Samples from one frame to the next (10 ms)."""
    bands: int = Field(default=40, ge=8)
    """Mel bands; the paper's kind of recogniser: 80."""


class AugmentationSettings(Settings):
    """SpecAugment (Park and others, 2019): stretches of time and bands of frequency are set to the mean."""

    frequency_masks: int = Field(default=2, ge=0)
    """Masks in frequency, for each utterance."""
    frequency_width: int = Field(default=7, ge=0)
    """Bands of the widest mask in frequency; 27 for 80 bands in the original."""
    time_masks: int = Field(default=2, ge=0)
    """Masks in time."""
    time_width: int = Field(default=25, ge=0)
    """Frames of the longest mask in time; 100 in the original."""
    begin_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the training steps before the first mask, and before the first noise in synthesised speech."""


class UnitSettings(Settings):
    """Units that the recogniser emits: SentencePiece pieces of normalised words."""

    size: int = Field(default=128, ge=4)
    """Pieces without the blank; the paper's kind of recogniser: 4,096. For several languages the sum of their blocks of
    equally many pieces, so that each unit has a language."""


class RecogniserArchitecture(Settings):
    """An Emformer encoder, an LSTM predictor and a joiner, as torchaudio makes them."""

    encoding: int = Field(default=256, ge=8)
    """Outputs of encoder and predictor, inputs of the joiner; paper's: 1,024."""
    segment_frames: int = Field(default=16, ge=1)
    """Frames of 10 ms that the encoder reads at once."""
    right_context_frames: int = Field(default=4, ge=0)
    """Frames of right context (look-ahead)."""
    left_context_frames: int = Field(default=30, ge=0)
    """Reduced frames before a segment that it attends to."""
    reduction: int = Field(default=4, ge=1)
    """Frames that are concatenated into one for the encoder's layers."""
    reduction_input: int = Field(default=64, ge=1)
    """Units of each such frame; the layers are ``reduction`` times as wide. Paper's: 128."""
    layers: int = Field(default=4, ge=1)
    """Emformer layers; paper's: 20."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; paper's: 8."""
    feed_forward: int = Field(default=1024, ge=8)
    """Units of a layer's inner width; paper's: 2,048."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the encoder's units left out at random; paper's: 0.1."""
    memory: int = Field(default=0, ge=0)
    """Summaries of earlier segments that the encoder attends to."""
    predictor_width: int = Field(default=256, ge=8)
    """Units of the predictor's embedding and LSTM; paper's: 512."""
    predictor_layers: int = Field(default=1, ge=1)
    """LSTM layers; paper's: 3."""
    predictor_norm: bool = False
    """Layer normalisation inside the LSTM, which makes it slow; paper's: true."""
    predictor_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the predictor's units left out at random; paper's: 0.3."""

    @model_validator(mode="after")
    def _check_divisions(self) -> Self:
        for name in ("segment_frames", "right_context_frames"):
            value = getattr(self, name)
            if value % self.reduction:
                raise ValueError(f"{name} is {value!r} and no multiple of reduction, {self.reduction!r}")
        if (width := self.reduction * self.reduction_input) % self.heads:
            raise ValueError(f"reduction * reduction_input is {width} and no multiple of heads, {self.heads!r}")
        return self


class RecogniserTraining(Settings):
    """Optimisation of one training run."""

    epochs: float = Field(default=1.0, gt=0, le=100_000)
    """Passes over the training speech; may be a fraction."""
    batch_seconds: float = Field(default=24.0, gt=0)
    """Seconds of speech per optimiser step, about, over all devices."""
    minimum_words: int = Field(default=1, ge=1)
    """Utterances of fewer words are left out, and counted."""
    maximum_words: int = Field(default=12, ge=1)
    """Utterances of more words are left out, and counted."""
    maximum_seconds: float = Field(default=20.0, gt=0)
    """Longer recordings are left out, and counted."""
    short_first: float = Field(default=0.25, ge=0, lt=1)
    """Share of the first epoch in which the longest utterances are added gradually: short ones are learned first."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of AdamW."""
    warmup_share: float = Field(default=0.05, ge=0, lt=1)
    """Share of the steps with a rising learning rate; afterwards it follows a cosine down."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decay of the weight matrices, as in AdamW."""
    gradient_clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    validate_every_steps: int = Field(default=500, ge=0)
    """Optimiser steps between two validations; 0: one after each epoch."""
    valid_utterances: int = Field(default=100, ge=1)
    """Number of first held-out utterances that are decoded at each validation."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic of matrix products; ``auto``: bfloat16 if the processor has it."""
    seed: Seed = 1
    """Seed of the weights, order and augmentation, and of the voices if speech is synthesised."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        refuse_out_of_order(self, "minimum_words", "maximum_words")
        return self


class TrainedRecogniser(Settings):
    """A recogniser that is trained here, with new weights or from another recogniser's."""

    kind: Literal["trained"] = "trained"
    """Name in dvc.lock for the weights that ship."""
    languages: Languages = Field(default=[], exclude_if=lambda languages: not languages)
    """At least two languages of the recogniser, such as ``[en, es]``: each word is spoken and spelled in the language
    that the manifest gives or that is inferred. Empty: one language."""
    begin_with: str | None = Field(default=None, exclude_if=lambda folder: folder is None)
    """Folder of a recogniser to start from, with the same ``architecture`` and ``features``. If its units have the same
    ``languages`` they are retained; otherwise units with the same spelling start with the same weights. ``null``: new
    weights."""
    features: FeatureSettings = FeatureSettings()
    augmentation: AugmentationSettings = AugmentationSettings()
    units: UnitSettings = UnitSettings()
    architecture: RecogniserArchitecture = RecogniserArchitecture()
    training: RecogniserTraining = RecogniserTraining()
    synthesis: SynthesisSettings = SynthesisSettings(voice_set="train")
    """Synthesis of training text; held-out text is spoken by the voices of ``dev``. Languages and sample rate are
    those of the recogniser."""


class EncodingSettings(Settings):
    """Encoding of recordings."""

    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longest accepted recording; memory grows with its square."""
