"""Options of commands that take a user's own text, in any form."""

import codecs
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from tasks.options import Options

if TYPE_CHECKING:
    from tasks.corpora.sources.text_files import FilesCorpus


def _known(encoding: str) -> str:
    try:
        "x".encode(encoding)
    except (LookupError, ValueError):
        raise ValueError(f"{encoding!r} is no encoding of text; give one such as utf-8, cp1252 or utf-16-le") from None
    return codecs.lookup(encoding).name


Encoding = Annotated[str, AfterValidator(_known)]
"""Encoding of text, by a name that Python knows."""


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
