"""Settings of the corpora: ``corpora.*`` in ``params.yaml``."""

import codecs
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from tasks.settings.base import Settings, SourcePath, refuse_out_of_order
from tasks.settings.seeds import Seed

if TYPE_CHECKING:
    from tasks.corpora.sources.document import Source


def _known(encoding: str) -> str:
    try:
        "x".encode(encoding)
    except (LookupError, ValueError):
        raise ValueError(f"{encoding!r} is no encoding of text; give one such as utf-8, cp1252 or utf-16-le") from None
    return codecs.lookup(encoding).name


Encoding = Annotated[str, AfterValidator(_known)]
"""Encoding of text, by a name that Python knows."""


class CleaningSettings(Settings):
    """Settings that select the sentences of a source."""

    minimum_words: int = Field(default=1, ge=0)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=200, ge=1)
    """Longer sentences are left out and counted."""
    train_sentences: int | None = Field(default=None, ge=1)
    """Largest number of sentences for training; ``null`` for all."""
    valid_sentences: int | None = Field(default=None, ge=1)
    """Sentences of the validation part, if the source brings none; a part of the source is taken whole. ``null``: a
    tenth of all sentences, at most 1,000, in whole documents."""
    test_sentences: int | None = Field(default=None, ge=1)
    """Sentences of the test part, if the source brings none; a part of the source is taken whole. ``null``: 15 % of all
    sentences, at most 2,000, in whole documents."""
    seed: Seed = 1
    """Seed of the split; documents (conversations, articles) are never divided between parts."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        refuse_out_of_order(self, "minimum_words", "maximum_words")
        return self


class CorpusSettings(Settings):
    """Base of the settings of a corpus.

    A reader is one file with its settings class, and one line in ``tasks.corpora.sources.mixture``, or an entry point
    of the group ``palimpsest.corpora`` in another package.
    """

    how_to_get: ClassVar[str] = "bring your own text"
    """Advice for the user if the files are missing."""
    kind: str
    source: SourcePath
    """File or folder with the text."""
    cleaning: CleaningSettings = CleaningSettings()
    """Selection of sentences."""

    @property
    def in_package(self) -> bool:
        """Whether the text is in a pip package, whose version ``source`` pins."""
        return False

    def open(self) -> "Source":
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        raise NotImplementedError


class WordCountSettings(Settings):
    """Settings of the frequencies of generic words: ``word_counts`` in ``params.yaml``."""

    published_share: float = Field(default=0.0, ge=0, le=1)
    """Weight of a language's published frequencies (package ``wordfreq``) against the counts of the generic text: 0
    uses the text only, 1 the published frequencies only."""
    published_languages: list[str] = Field(default=["en"], min_length=1)
    """Languages of the published frequencies, such as [en, es] for text that mixes them, with equal weights."""

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
