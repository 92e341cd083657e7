"""Settings of the corpora: ``corpora.*`` in ``params.yaml``."""

from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from tasks.settings.base import Settings, SourcePath, refuse_out_of_order
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    from tasks.corpora.sources.document import Source


class CleaningSettings(Settings):
    """Which sentences of a source come in."""

    minimum_words: int = Field(default=1, ge=0)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=200, ge=1)
    """Longer sentences are left out and counted."""
    train_sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences for training; ``null`` for all."""
    valid_sentences: int | None = Field(default=None, ge=1)
    """Sentences of the validation part, where the source brings none; a part that it brings is taken whole. ``null``: a
    tenth of all sentences, at most 1,000, in whole documents."""
    test_sentences: int | None = Field(default=None, ge=1)
    """Sentences of the test part, where the source brings none; a part that it brings is taken whole. ``null``: three
    of twenty sentences, at most 2,000, in whole documents."""
    seed: Seed = 1
    """Seed of the split; documents (conversations, articles) are never divided between parts."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        refuse_out_of_order(self, "minimum_words", "maximum_words")
        return self


class CorpusSettings(Settings):
    """Settings of a corpus, which know the reader of its source.

    A reader is one file with its settings class, and one line in ``tasks.corpora.sources.mixture``, or an entry point
    of the group ``palimpsest.corpora`` in another package.
    """

    how_to_get: ClassVar[str] = "bring your own text"
    """What to do where its files are not there."""
    kind: str
    source: SourcePath
    """Where the text is: a file or folder."""
    cleaning: CleaningSettings = CleaningSettings()
    """Which of its sentences come in."""

    @property
    def in_package(self) -> bool:
        """Whether the text lies in a pip package, whose version ``source`` pins."""
        return False

    def open(self) -> "Source":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        raise NotImplementedError


class WordCountSettings(Settings):
    """Where the frequencies of generic words come from: ``word_counts`` in ``params.yaml``."""

    published_share: float = Field(default=0.0, ge=0, le=1)
    """Weight of the published frequencies of a language (package ``wordfreq``) beside the counts of the generic
    text: 0 for the text alone, 1 for the published ones alone."""
    published_languages: list[str] = Field(default=["en"], min_length=1)
    """The languages of the published frequencies, such as [en, es] for text that mixes them; equally much of each."""

    @field_validator("published_languages")
    @classmethod
    def _languages_are_published(cls, languages: list[str]) -> list[str]:
        from tasks.languages.word_lists import listed_languages

        unknown = [language for language in languages if language != "en" and language not in listed_languages()]
        if unknown:
            raise ValueError(
                f"{', '.join(unknown)}: no published frequencies; give some of {', '.join(listed_languages())}"
            )
        return languages
