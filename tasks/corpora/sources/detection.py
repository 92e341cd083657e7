"""How a text of a user's own is to be read, by a look at it: which field holds the text, what is a document, and
whether a line holds several sentences.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.corpora.parquet_lines import open_parquet
from tasks.corpora.sources.document import Source, split_sentences
from tasks.corpora.sources.text_files import FilesCorpus
from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError

_LOOKED_AT = 2000
"""Texts that tell whether a line holds several sentences."""
_TEXT_FIELDS = ("text", "body", "content", "message", "sentence", "utterance")
_DOCUMENT_FIELDS = ("document", "thread", "thread_id", "conversation", "conversation_id", "dialogue_id", "session_id")
_FEWEST_FILES = 10
"""Plain text files of a folder from which on each is a document."""


def detected(given: Path) -> FilesCorpus:
    """The reader's settings for a file or folder.

    Raises ``CorpusError`` where it is not there, or no field of its records has a name that text has.
    """
    found: dict[str, Any] = {"kind": "files", "source": str(given)}
    files = [Path(path) for path in FilesCorpus(**found).open().files]
    if (fields := _fields(files[0])) is not None:
        texts = [field for field in _TEXT_FIELDS if field in fields]
        if not texts:
            raise CorpusError(
                f"{str(files[0])!r} has the fields {', '.join(sorted(fields))}, and none is called "
                f"{', '.join(_TEXT_FIELDS)}: rename the one that holds the text"
            )
        found["text_field"] = texts[0]
        found["document_field"] = next((field for field in _DOCUMENT_FIELDS if field in fields), None)
    elif len([path for path in files if path.suffix in (".txt", ".text")]) >= _FEWEST_FILES:
        found["documents"] = "files"
    settings = FilesCorpus(**found)
    return settings.model_copy(update={"split": _holds_several_sentences(settings.open())})


def _fields(path: Path) -> set[str] | None:
    """The fields of the first record, where a file has such."""
    if path.suffix == ".parquet":
        with open_parquet(path) as table:
            return set(table.schema_arrow.names)
    if path.suffix not in (".jsonl", ".ndjson"):
        return None
    try:
        first = read_json_line(next((line for line in read_lines(path) if line.strip()), "{}"))
    except NoJson as problem:
        raise CorpusError(f"{str(path)!r}: the first line {problem}; give one record a line") from None
    if not isinstance(first, dict):
        raise CorpusError(f"{str(path)!r}: the first line is no JSON object; give one record a line")
    return set(first)


def _holds_several_sentences(source: Source) -> bool:
    texts = list(islice(texts_of(source), _LOOKED_AT))
    return sum(len(split_sentences(text)) for text in texts) > 2 * len(texts)


def texts_of(source: Source) -> Iterator[str]:
    """All texts of a source, in its order."""
    for part in source.parts:
        for document in source.documents(part):
            yield from document.texts
