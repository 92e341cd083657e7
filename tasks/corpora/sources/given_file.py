"""One file of a user's text: its lines in its encoding, its records by field, and counts of texts left out.

A reader is a function of a ``GivenFile``. It yields units, such as a message, a cue, a record or a paragraph: the name
of its document (``None``: it is one itself), its texts, and its label.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from tasks.corpora.forms import FORMS
from tasks.corpora.text_lines import UTF16_MARKS, decode_lines, encoded_lines, held_lines, refuse_long
from tasks.errors import CorpusError

SYSTEM, NO_TEXT, MEDIA = "system", "no_text", "media"
"""Reasons to leave out a message: no person wrote it, it has no text, or it is a picture, recording or file."""
NAMED_FIELD = "name it with text_field, or with --text-field of 'palimpsest try' and 'palimpsest init'"
"""Advice for records whose text is in another field."""
_OF_NOBODY = ("system", "developer", "tool", "function")
"""Roles of a conversation whose texts no person and no assistant wrote."""
_GUESSED_BY = 1 << 20
"""Bytes that show an encoding."""
_LARGEST_DOCUMENT = 256 << 20
"""Largest size of a file that is read as a whole."""


class Unit(NamedTuple):
    """Texts of one document, in their order."""

    name: object
    texts: list[str]
    label: str | None = None


@dataclass
class GivenFile:
    """A file, how to read it, and counts of texts that its reader leaves out or guesses."""

    path: Path
    name: str
    """Name in errors."""
    form: str
    text_field: str = "text"
    document_field: str | None = None
    label_field: str | None = None
    encoding: str | None = None
    threads: dict[str, str] = field(default_factory=dict)
    """The first message of each message's thread, for all files of mail."""
    left_out: Counter[str] = field(default_factory=Counter)
    guessed: Counter[str] = field(default_factory=Counter)

    def lines(self) -> Iterator[str]:
        """The lines, without line ends.

        Without a given encoding: UTF-16 if its mark is there, else UTF-8; from the first line of another encoding on,
        the one that the bytes show, which is counted as guessed.
        """
        with open(self.path, "rb") as stream:
            mark = stream.peek(2)[:2]
            if self.encoding or mark in UTF16_MARKS:
                yield from encoded_lines(stream, self.name, self.encoding or "utf-16")
                return

            def fallback(line: bytes) -> str | None:
                return self._guess(line, stream)

            yield from decode_lines(refuse_long(held_lines(stream.readline), self.name), self.name, fallback)

    def text(self) -> str:
        """The whole text; ``CorpusError`` if it is too large for that."""
        if self.path.stat().st_size > _LARGEST_DOCUMENT:
            raise CorpusError(
                f"{self.name!r} is {FORMS[self.form][0]} of more than {_LARGEST_DOCUMENT >> 20} MiB, which is read as "
                "a whole; divide it into several files, or write JSON lines"
            )
        return "\n".join(self.lines())

    def _guess(self, line: bytes, stream: IO[bytes]) -> str | None:
        """The encoding of a line that is not UTF-8 and of the bytes after it; ``None`` if they are no text."""
        from charset_normalizer import from_bytes

        place = stream.tell()
        following = stream.read(_GUESSED_BY)
        stream.seek(place)
        sample = line + following[: following.rfind(b"\n") + 1]
        if b"\0" in sample:
            raise CorpusError(f"{self.name!r} is no text: it has bytes of another kind; give a file of text")
        found = [name for match in from_bytes(sample) for name in match.could_be_from_charset if "utf" not in name]
        name = found[0] if found else None
        # Most of these bytes mean the same in neighbouring encodings; the most frequent of them is meant.
        if name and ("cp1252" in found or _decoded(sample, "cp1252") == _decoded(sample, name)):
            name = "cp1252"
        # Byte 255 is a letter of no common word in Latin scripts: such a file is damaged.
        if name and "\u00ff" in sample.decode(name):
            name = None
        if name:
            self.guessed[f"files are read as {name.upper()}, guessed from their bytes (--encoding sets another)"] += 1
            self.encoding = name  # when it is read again
        return name

    @contextmanager
    def parsed(self) -> Iterator[None]:
        """Raise ``CorpusError`` in place of a library's error: a damaged file raises any, and it may quote the text."""
        try:
            yield
        except CorpusError:
            raise
        except Exception as error:
            raise CorpusError(f"{self.name!r} is damaged ({type(error).__name__}); save it again") from None

    def of_records(self, records: Iterable[tuple[str, object]]) -> Iterator[Unit]:
        """The units of records, each with its place for errors: one for each record."""
        outer, _, inner = self.text_field.partition(".")
        for place, record in records:
            fields = record if isinstance(record, dict) else {}
            before, text = self.left_out.total() if self.left_out else 0, fields.get(self.text_field)
            texts = [text] if isinstance(text, str) else list(self._texts(record, self.text_field))
            if not texts and self.left_out.total() == before:
                if not inner or outer not in fields:
                    where = f"{self.name!r}: {place}"
                    raise CorpusError(f"{where} has no text field {self.text_field!r}; {NAMED_FIELD}")
                self.left_out[NO_TEXT] += 1
            label = self._value(record, self.label_field, place) if self.label_field else None
            label = None if label is None else " ".join(str(label).split())
            yield Unit(self._value(record, self.document_field, place) if self.document_field else None, texts, label)

    def _value(self, record: object, asked: str, place: str) -> object:
        found = next((value for value in values_of(record, asked) if value is not None), None)
        if found is None:
            raise CorpusError(f"{self.name!r}: {place} has no field {asked!r}")
        return found

    def _texts(self, record: object, asked: str) -> Iterator[str]:
        """The texts of a field; of a nested one, other values are counted."""
        parent, _, last = asked.rpartition(".")
        for entry in values_of(record, parent) if parent else [record]:
            if isinstance(entry, dict) and entry.get("role") in _OF_NOBODY and parent:
                self.left_out[SYSTEM] += 1
                continue
            for value in values_of(entry, last):
                if isinstance(value, str):
                    yield value
                elif isinstance(value, dict) and isinstance(value.get("text"), str):
                    yield value["text"]
                elif parent or isinstance(value, dict):
                    self.left_out[MEDIA if isinstance(value, dict) else NO_TEXT] += 1


def _decoded(sample: bytes, encoding: str) -> str | None:
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError:
        return None


def values_of(record: object, path: str, levels: int = 50) -> list[Any]:
    """The values of a field such as ``messages.content``; lists on the way and at its end give all their values."""
    if isinstance(record, list):
        return [value for entry in record for value in values_of(entry, path, levels - 1)] if levels else []
    if not isinstance(record, dict):
        return []
    if path in record:
        found = record[path]
        return found if isinstance(found, list) else [found]
    first, _, rest = path.partition(".")
    return values_of(record[first], rest, levels) if rest and first in record else []


def fields_of(record: object, before: str = "", levels: int = 50) -> set[str]:
    """The names of all fields of a record, nested ones with dots, down to so many levels."""
    inner: list[tuple[str, object]] = []
    if isinstance(record, dict) and levels:
        inner = [(f"{before}.{key}" if before else str(key), value) for key, value in record.items()]
    elif isinstance(record, list) and levels:
        inner = [(before, entry) for entry in record]
    found = {name for key, value in inner for name in fields_of(value, key, levels - 1)}
    return found or ({before} if before and not isinstance(record, dict) else set())
