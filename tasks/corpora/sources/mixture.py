"""All kinds of corpora: those of this package and of other packages. A mixture reads several sources one after the
other, such as generic text of more than one kind."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from tasks.corpora.settings import CleaningSettings, CorpusSettings
from tasks.corpora.sources.document import PARTS, Document, Part, Source
from tasks.corpora.sources.drawn_words import DrawnWordsCorpus
from tasks.corpora.sources.fisher import FisherCorpus
from tasks.corpora.sources.package_text import ChitchatCorpus, EncyclopediaCorpus
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
"""Sources of this package that can be part of a mixture; other packages' corpora can too."""
if TYPE_CHECKING:
    AnySource = CorpusSettings
else:
    AnySource = any_of(GROUP, SOURCES)


class MixtureCorpus(CorpusSettings):
    """Several sources as one corpus, such as generic text of more than one kind."""

    kind: Literal["mixture"]
    source: SourcePath
    """File or folder whose hash is the version of all sources: each source is it, or is inside it."""
    of: list[AnySource] = Field(min_length=1)
    """The sources, without a ``cleaning`` of their own."""

    @model_validator(mode="after")
    def _one_version_and_one_cleaning(self) -> Self:
        for index, part in enumerate(self.of):
            if part.cleaning != CleaningSettings():
                raise ValueError(f"of.{index}.cleaning has no effect in a mixture; give it next to 'of'")
            if not Path(part.source).is_relative_to(self.source):
                raise ValueError(
                    f"of.{index}.source {part.source!r} is neither source {self.source!r} nor inside it, so a change "
                    "would go unnoticed; put all sources under one folder and name it as source"
                )
        return self

    @property
    def in_package(self) -> bool:
        """Whether every source is in a pip package."""
        return all(part.in_package for part in self.of)

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        sources = [part.open() for part in self.of]

        def documents(part: Part | None) -> Iterator[Document]:
            """The documents of each source in turn; equal names in different sources are different documents."""
            for number, source in enumerate(sources):
                for document in source.documents(part) if part in source.parts else ():
                    yield document if document.name is None else replace(document, name=(number, document.name))

        parts = [part for part in (*PARTS, None) if any(part in source.parts for source in sources)]
        return Source([file for source in sources for file in source.files], documents, parts)


if TYPE_CHECKING:
    AnyCorpus = CorpusSettings
else:
    AnyCorpus = any_of(GROUP, (*SOURCES, MixtureCorpus))
