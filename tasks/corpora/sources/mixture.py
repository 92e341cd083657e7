"""Several sources read one after the other as one: generic text of more than one kind, say."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.corpora.sources.document import PARTS, Document, Part, Source


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
