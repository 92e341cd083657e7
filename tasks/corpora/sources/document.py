"""What a source of text yields: documents, each a list of texts that must stay in one part of the corpus."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """A conversation, an article, a mail, or a single sentence where nothing says what belongs together."""

    texts: list[str]
    """Sentences as the source has them, not cleaned yet."""
    part: Part | None = None
    """The part that the source itself assigns it to; ``None``: to be divided."""
    name: object = None
    """Documents of one name are parts of one, wherever they stand; ``None``: a document of its own."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Texts that the reader itself left out since the document before this one, by their reason."""


class Source(Protocol):
    """Text in one of the forms it comes in."""

    files: list[str]
    """The files that are read, for the lineage in the report."""

    @property
    def parts(self) -> Sequence[Part | None]:
        """The parts that the source itself assigns its documents to; ``None`` among them: some are to be divided."""
        ...

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """Read the documents of one part from the beginning; may be called several times and yields the same each time.

        Memory must not grow with the source.
        """
        ...
