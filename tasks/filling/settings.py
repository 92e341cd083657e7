"""Settings of fillers and filling methods: ``fillers.*`` and ``filling.*`` in ``params.yaml`` (paper 3.2)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tasks.filling.masked_lm.order_of_filling import OrderName
from tasks.masking.settings import SpacyTagger, TaggerSettings
from tasks.settings_base import Settings


class HeadTraining(Settings):
    """How a masked-LM head is trained on top of a pretrained body that comes without one."""

    steps: int = Field(default=600, ge=1)
    """Optimiser steps."""
    batch_pieces: int = Field(default=768, ge=64)
    """Word pieces per step, padding included; sentences of about equal length stand together."""
    longest_sentence: int = Field(default=64, ge=8)
    """Longer sentences are cut to so many word pieces."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of the head; the body's is ``body_learning_rate``."""
    body_learning_rate: float = Field(default=3e-4, ge=0)
    """Peak learning rate of the body; 0 freezes it. Its word embeddings, which are the head's decoder too, stay as
    they are."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rates rise to their peak; they fall to 0 in the rest."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of word pieces to predict; always whole words."""
    seed: int = Field(default=1, ge=0)
    """Seed of the order of sentences and of the masks."""


class MaskedLanguageModelFiller(Settings):
    """A masked language model of Hugging Face's, by hub name or folder."""

    kind: Literal["masked_lm"]
    model: str
    """Hub name (``bert-base-uncased``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    train_head: HeadTraining | None = None
    """Training of the masked-LM head on the generic corpus; ``null`` where the model brings a head of its own."""


class LoraTraining(Settings):
    """How a causal language model is tuned with LoRA on prompts (paper 3.2), by sentences without markers."""

    steps: int = Field(default=200, ge=1)
    """Optimiser steps."""
    batch_sentences: int = Field(default=8, ge=1)
    """Sentences per step."""
    longest_sentence: int = Field(default=64, ge=8)
    """Sentences with more pieces are left out."""
    rank: int = Field(default=8, ge=1)
    """r: rank of the update of each matrix."""
    alpha: float = Field(default=16.0, gt=0)
    """The update is scaled by alpha / r."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """Share of the update's inputs that are left out at random."""
    target_modules: list[str] | None = None
    """Names of the layers that are updated; ``null`` takes all linear ones but the head."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate."""
    warm_up_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises to its peak; it falls to 0 in the rest."""
    masked_share: float = Field(default=0.2, gt=0, lt=1)
    """Share of a sentence's words that the prompt masks, one at least."""
    merge: bool = True
    """Whether the update is added to the weights in the filler's folder; otherwise the folder holds the update alone
    and names its base."""
    seed: int = Field(default=1, ge=0)
    """Seed of the order of sentences, of the masks and of the fresh weights."""


class CausalLanguageModelFiller(Settings):
    """A causal language model of Hugging Face's, tuned with LoRA or as it is."""

    kind: Literal["causal_lm"]
    model: str
    """Hub name (``meta-llama/Llama-2-7b-hf``), folder, or ``package:NAME/FOLDER`` for a model inside a pip package."""
    gguf_file: str | None = None
    """File in that folder, where the weights are in GGUF; they are unpacked once, into the filler's own folder."""
    precision: Literal["auto", "float32", "bfloat16", "4bit"] = "auto"
    """What the model computes in: ``auto`` is bfloat16 on a GPU and float32 on a processor; ``4bit`` needs a GPU and
    the package bitsandbytes."""
    lora: LoraTraining | None = None
    """Tuning with LoRA on the generic corpus; ``null`` takes the model as it is."""


FillerSettings = Annotated[MaskedLanguageModelFiller | CausalLanguageModelFiller, Field(discriminator="kind")]


class RightContext(Settings):
    """How a causal language model, which reads from left to right, takes account of what stands behind a marker. A
    masked language model sees both sides and has no use for it."""

    words: int = Field(default=3, ge=0)
    """So many known words behind a marker are scored behind each candidate; 0: the left-hand context alone decides."""
    candidates: int = Field(default=8, ge=1)
    """Words that are scored in this way, K of ``top_k`` at least."""


class ClassCheck(Settings):
    """How fills are held against the classes of their markers, where ``classes`` is ``match``."""

    tagger: TaggerSettings = SpacyTagger(kind="spacy")
    """Whose entities say of which class a fill is."""
    attempts: int = Field(default=3, ge=0, le=10)
    """How often a fill of another class is drawn again before it becomes a surrogate."""


class _ClassAware(Settings):
    classes: Literal["ignore", "match"] = "ignore"
    """``match``: a fill has the class of its marker, or of the sidecar's label where the marker is ``[MASK]``, checked
    by a tagger (see ``class_check``)."""
    class_check: ClassCheck = ClassCheck()
    """How it is checked."""


class _MaskedLanguageModelMethod(_ClassAware):
    uses_filler: ClassVar[bool] = True
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    order: OrderName = "left_to_right"
    """In which order a masked language model fills the markers of a sentence, and so which fills it sees: one after
    the other as in the paper; all of them in one pass, none seeing another; or the one that it is surest of first."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""
    right_context: RightContext = RightContext()
    """What a causal language model does besides reading from left to right."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute; needs the sidecar, and leaks a little (see
    ``slot_originals``)."""


class Top1(_MaskedLanguageModelMethod):
    """The filler's best word."""

    kind: Literal["top_1"]


class TopK(_MaskedLanguageModelMethod):
    """A random one of the K best words, drawn again while it is on the list of kept words."""

    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: candidates per marker."""


class Sample(_MaskedLanguageModelMethod):
    """A draw from the filler's whole distribution over words that are not on the list of kept words."""

    kind: Literal["sample"]
    temperature: float = Field(default=1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it."""


class Free(_ClassAware):
    """A causal language model writes the whole sentence, and its words at the markers are taken (paper 3.2)."""

    uses_filler: ClassVar[bool] = True
    kind: Literal["free"]
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling."""
    attempts: int = Field(default=2, ge=0)
    """How often a sentence is written again, now by chance, where the best sentence has other words than the known ones
    or not one word for each marker."""
    temperature: float = Field(default=0.7, gt=0)
    """Of these further attempts."""
    fallback: Literal["constrained", "unigram"] = "constrained"
    """What fills a sentence when all attempts have failed: the same model with the known words forced, or words off the
    list of kept words by their frequency in the word counts."""
    right_context: RightContext = RightContext()
    """Of the constrained fallback."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute: a sentence that has it counts as failed."""


class Unigram(_ClassAware):
    """Control without context: a word off the list, drawn by its frequency in the generic corpus."""

    uses_filler: ClassVar[bool] = False
    kind: Literal["unigram"]
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as for the other methods."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute, as for the other methods."""


class Surrogate(Settings):
    """Names, places and figures from gazetteers by the class of the marker, as anonymisers write them; no model."""

    uses_filler: ClassVar[bool] = False
    classes: ClassVar[str] = "ignore"
    """A surrogate is of its class already."""
    forbid_original: ClassVar[bool] = False
    """Where the sidecar is read, a surrogate is never the original anyway."""
    kind: Literal["surrogate"]
    consistent_within: Literal["line", "corpus"] = "line"
    """Where the same original gets the same surrogate. ``corpus``: whoever knows the seed can try out which original
    gives a surrogate (see ``surrogate``)."""
    merge_markers: bool = False
    """Whether a run of consecutive markers is merged into one; a name of two words is one surrogate of two words."""


FillingSettings = Annotated[Top1 | TopK | Sample | Free | Unigram | Surrogate, Field(discriminator="kind")]
