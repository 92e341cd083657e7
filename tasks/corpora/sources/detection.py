"""Detection of the format of a user's text: the field with the text, the documents, and lines of several sentences."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.corpora.sources.document import Source, split_sentences
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.errors import CorpusError
from tasks.spelling import nearest

_LOOKED_AT = 2000
"""Texts that are read to detect lines of several sentences."""
_TEXT_FIELDS = ("text", "body", "content", "message", "sentence", "utterance")
_DOCUMENT_FIELDS = ("document", "thread", "thread_id", "conversation", "conversation_id", "dialogue_id", "session_id")
_FEWEST_FILES = 10
"""Plain text files in a folder from which on each file is a document."""


def detected(given: Path, text_field: str | None = None, document_field: str | None = None) -> FilesCorpus:
    """The reader's settings for a file or folder.

    Raises ``CorpusError`` if it is missing, if its records lack the given fields, or if no field is given and none has
    a usual name.
    """
    found: dict[str, Any] = {"kind": "files", "source": str(given)}
    opened = FilesCorpus(**found).open()
    first, fields = opened.files[0], opened.fields()
    if fields is None:
        if text_field or document_field:
            raise CorpusError(f"{first!r} is plain text or mail and has no fields; leave --text-field out")
        if len([path for path in opened.files if Path(path).suffix.lower() in (".txt", ".text")]) >= _FEWEST_FILES:
            found["documents"] = "files"
    else:
        for option, field in (("--text-field", text_field), ("--document-field", document_field)):
            if field is not None and field not in fields:
                raise CorpusError(
                    f"{option}: {first!r} has no field {field!r}{nearest(field, fields)}; name one it has"
                )
        texts = [text_field] if text_field else [field for field in _TEXT_FIELDS if field in fields]
        if not texts:
            # The first row of a table without a header is text of the user's.
            is_table = Path(first).suffix.lower() in (".csv", ".tsv")
            named = f"the fields {', '.join(sorted(fields))}" if fields else "fields with lists alone"
            raise CorpusError(
                f"{first!r} has {f'{len(fields)} columns' if is_table else named}, and none is called "
                f"{', '.join(_TEXT_FIELDS)}: name the one that holds the text with --text-field, or rename it. What "
                "lies in lists needs records of its own, one a line"
            )
        found["text_field"] = texts[0]
        known = (field for field in _DOCUMENT_FIELDS if field in fields)
        found["document_field"] = document_field or next(known, None)
    settings = FilesCorpus(**found)
    return settings.model_copy(update={"split": _holds_several_sentences(settings.open())})


def _holds_several_sentences(source: Source) -> bool:
    texts = list(islice(texts_of(source), _LOOKED_AT))
    return sum(len(split_sentences(text)) for text in texts) > 2 * len(texts)


def texts_of(source: Source) -> Iterator[str]:
    """All texts of a source, in its order."""
    for part in source.parts:
        for document in source.documents(part):
            yield from document.texts
