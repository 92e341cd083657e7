"""All corpora that can be brought in: those of this package, those that others register, and several of them read one
after the other as one, such as generic text of more than one kind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from tasks.corpora.settings import CleaningSettings, CorpusSettings
from tasks.corpora.sources.chitchat import ChitchatCorpus
from tasks.corpora.sources.document import PARTS, Document, Part, Source
from tasks.corpora.sources.drawn_words import DrawnWordsCorpus
from tasks.corpora.sources.encyclopedia import EncyclopediaCorpus
from tasks.corpora.sources.fisher import FisherCorpus
from tasks.corpora.sources.pushshift import PushshiftCorpus
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.corpora.sources.wikitext import WikiTextCorpus
from tasks.corpora.sources.wsj import WallStreetJournalCorpus
from tasks.settings.base import SourcePath, any_of

GROUP = "palimpsest.corpora"
"""Entry points of other packages: settings classes of corpora."""
SOURCES = (
    ChitchatCorpus,
    EncyclopediaCorpus,
    DrawnWordsCorpus,
    FilesCorpus,
    WikiTextCorpus,
    FisherCorpus,
    PushshiftCorpus,
    WallStreetJournalCorpus,
)
"""What can be a part of a mixture, beside the corpora of other packages."""
if TYPE_CHECKING:
    AnySource = CorpusSettings
else:
    AnySource = any_of(GROUP, SOURCES)


class MixtureCorpus(CorpusSettings):
    """Several sources as one corpus, such as generic text of more than one kind."""

    kind: Literal["mixture"]
    source: SourcePath
    """The file or folder whose hash is the version of all sources: each of them is it, or lies in it."""
    of: list[AnySource] = Field(min_length=1)
    """The sources, without a ``cleaning`` of their own."""

    @model_validator(mode="after")
    def _one_version_and_one_cleaning(self) -> Self:
        for index, part in enumerate(self.of):
            if part.cleaning != CleaningSettings():
                raise ValueError(f"of.{index}.cleaning has no effect in a mixture; give it beside 'of'")
            if not Path(part.source).is_relative_to(self.source):
                raise ValueError(
                    f"of.{index}.source {part.source!r} is neither source {self.source!r} nor inside it, so a change "
                    "would go unnoticed; put all sources under one folder and name it as source"
                )
        return self

    @property
    def in_package(self) -> bool:
        """Whether all of it does."""
        return all(part.in_package for part in self.of)

    def open(self) -> "Mixture":
        """The reader; ``CorpusError`` where its files are not there. Nothing is read yet."""
        return Mixture([part.open() for part in self.of])


class Mixture:
    """The source ``kind: mixture``."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)
        self.files = [file for source in self._sources for file in source.files]
        self.parts: tuple[Part | None, ...] = tuple(
            part for part in (*PARTS, None) if any(part in source.parts for source in self._sources)
        )

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """The documents of each source in turn; a name tells documents of one source apart, not those of several."""
        for number, source in enumerate(self._sources):
            if part in source.parts:
                for document in source.documents(part):
                    yield document if document.name is None else replace(document, name=(number, document.name))


if TYPE_CHECKING:
    AnyCorpus = CorpusSettings
else:
    AnyCorpus = any_of(GROUP, (*SOURCES, MixtureCorpus))
