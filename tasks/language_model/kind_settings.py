"""Settings that belong to one kind of downstream model: ``language_model.kind`` says which of them are read.

The Transformer's stand beside, in ``architecture``, ``pretraining`` and ``adaptation``.
"""

from typing import Literal

from pydantic import Field

from tasks.settings.base import Settings

Kind = Literal["transformer", "ngram", "causal_lm"]
"""``transformer``: the paper's, trained here on words; ``ngram``: modified Kneser-Ney, in seconds; ``causal_lm``: a
causal language model of Hugging Face's, adapted with LoRA or in full."""


MOST_EPOCHS = 100_000
"""Passes over a training text; nobody means more."""


class TransformerSettings(Settings):
    """Nothing so far: ``architecture``, ``pretraining`` and ``adaptation`` say it all. The section has to be there,
    since ``dvc.yaml`` makes each stage depend on the section of its kind."""


class NgramSettings(Settings):
    """An n-gram model with modified Kneser-Ney smoothing."""

    order: int = Field(default=3, ge=1, le=6)
    """Longest n-gram, in words."""
    generic_weight: float | None = Field(default=None, ge=0, le=1)
    """Weight of the generic model in an adapted one; ``null``: the weight under which the validation text is most
    probable."""


class LoraAdaptation(Settings):
    """An update of low rank in place of new weights."""

    rank: int = Field(default=8, ge=1)
    """r: rank of the update of each matrix."""
    alpha: float = Field(default=16.0, gt=0)
    """The update is scaled by alpha / r."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Share of the update's inputs that are left out at random."""
    target_modules: list[str] | None = None
    """Names of the layers that are updated; ``null`` takes all linear ones but the head."""


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
