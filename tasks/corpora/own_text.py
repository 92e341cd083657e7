"""Options of commands that take a user's own text, in any form."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tasks.corpora.settings import Encoding
from tasks.options import Options

if TYPE_CHECKING:
    from tasks.corpora.sources.text_files import FilesCorpus


class OwnTextOptions(Options):
    """How to read the text."""

    text_field: str | None = None
    """field or column with the text, if it has an unusual name; nested: messages.content"""
    document_field: str | None = None
    """field or column that names the document of each text"""
    encoding: Encoding | None = None
    """encoding of the text, such as cp1252 (default: UTF-8, else guessed from the bytes)"""
    query: str | None = None
    """SQL query, if the text is the URL of a database: sqlite:///FILE"""

    @contextmanager
    def reader_of(self, text: str) -> "Iterator[FilesCorpus]":
        """The reader's settings for a path or a database, whose rows are in a file as long as the block."""
        from tasks.corpora.sources.database import given_text
        from tasks.corpora.sources.detection import detected

        with given_text(text, self.query) as given:
            yield detected(given, self.text_field, self.document_field, self.encoding)


def said_of(left_out: Mapping[str, int]) -> str:
    """The counts of texts that are left out, by reason, as a line."""
    return ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in left_out.items() if count) or "none"
