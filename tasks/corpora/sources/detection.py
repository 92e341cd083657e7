"""Detection of how a user's text is read: the field with the text, the documents, and lines of several sentences."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.corpora.forms import FORMS, TEXT_FIELDS, path_ends
from tasks.corpora.sources.document import Source, split_sentences
from tasks.corpora.sources.text_files import FilesCorpus, TextFiles
from tasks.errors import CorpusError
from tasks.spelling import nearest

_LOOKED_AT = 2000
"""Texts that are read to detect lines of several sentences."""
_NESTED_FIELDS = (*TEXT_FIELDS, "value")
"""Last names of nested fields that are looked for."""
_DOCUMENT_FIELDS = ("document", "thread", "thread_id", "conversation", "conversation_id", "dialogue_id", "session_id")
_FEWEST_DOCUMENTS = 10
"""Documents of a form from which on they are taken; of fewer, no three parts can be made."""


def detected(
    given: Path, text_field: str | None = None, document_field: str | None = None, encoding: str | None = None
) -> FilesCorpus:
    """The reader's settings for a file or folder.

    Raises ``CorpusError`` if it is missing, if its records lack the given fields, or if no field is given and none has
    a usual name.
    """
    found: dict[str, Any] = {"kind": "files", "source": str(given), "encoding": encoding}
    opened = FilesCorpus(**found).open()
    fields = opened.fields()
    if fields is None:
        if text_field or document_field:
            form = FORMS[min(opened.forms)][0]
            raise CorpusError(f"{opened.files[0]!r} is {form} and has no fields; leave --text-field out")
    else:
        for option, field in (("--text-field", text_field), ("--document-field", document_field)):
            if field is not None and field not in fields:
                raise CorpusError(
                    f"{option}: {opened.files[0]!r} has no field {field!r}{nearest(field, fields)}; name one it has"
                )
        found["text_field"] = text_field or _text_field(opened, fields)
        known = (field for field in _DOCUMENT_FIELDS if field in fields)
        found["document_field"] = document_field or next(known, None)
    texts = [path for path in opened.files if path_ends(path, ".txt", ".text")]
    if fields is None and "text" in opened.forms and len(texts) >= _FEWEST_DOCUMENTS:
        found["documents"] = "files"
    elif fields is None and opened.forms != {"text"}:
        found["documents"] = "auto" if _has_documents(FilesCorpus(**found).open()) else "lines"
    settings = FilesCorpus(**found)
    texts_looked_at = list(islice(texts_of(settings.open()), _LOOKED_AT))
    sentences = sum(len(split_sentences(text)) for text in texts_looked_at)
    return settings.model_copy(update={"split": sentences > 2 * len(texts_looked_at)})


def _text_field(opened: TextFiles, fields: set[str]) -> str:
    """The field with a usual name, in any case; of nested ones, the one that is least deep."""
    lower = {field.lower(): field for field in sorted(fields, reverse=True)}
    for name in TEXT_FIELDS:
        if name in fields or name in lower:
            return name if name in fields else lower[name]
    nested = [field for field in fields if "." in field and field.rpartition(".")[2].lower() in _NESTED_FIELDS]
    least = [field for field in nested if field.count(".") == min(one.count(".") for one in nested)]
    if len(least) == 1:
        return least[0]
    # The first row of a table without a header is text of the user's.
    is_table = bool(opened.forms & {"csv", "tsv", "excel"})
    named = f"the fields {', '.join(sorted(fields))}" if fields else "no fields"
    raise CorpusError(
        f"{opened.files[0]!r} has {f'{len(fields)} columns' if is_table else named}, and none is called "
        f"{', '.join(TEXT_FIELDS)}: name the one that holds the text with --text-field, or rename it"
    )


def _has_documents(source: Source) -> bool:
    """Whether the form divides the text into enough documents."""
    names, unnamed = set[object](), 0
    for document in (one for part in source.parts for one in source.documents(part) if one.texts):
        unnamed += document.name is None
        names.add(document.name)
        if len(names - {None}) + unnamed >= _FEWEST_DOCUMENTS:
            return True
    return False


def texts_of(source: Source) -> Iterator[str]:
    """All texts of a source, in its order."""
    for part in source.parts:
        for document in source.documents(part):
            yield from document.texts
