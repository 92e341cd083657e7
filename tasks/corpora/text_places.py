"""Texts of a file at their places, so that a copy can have other texts and all other characters unchanged.

A file is a sequence of pieces: characters that stay, and texts. Each form has a function that divides a file. Forms of
which only the text is read (mail, PDF, web pages) cannot be written back.
"""

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tasks.corpora.forms import FORMS
from tasks.corpora.sources.given_file import GivenFile, fields_of, values_of
from tasks.corpora.sources.records import dialect, entries_of, json_lines, json_value, parquet_columns, table_columns
from tasks.corpora.sources.subtitles import NAMED, TAG, TIMES, VOICE
from tasks.corpora.text_lines import NoJson, read_json_line
from tasks.errors import CorpusError

_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_LINE_END = re.compile("(\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text of a file."""

    text: str
    document: object = None
    """Name of its document; ``None``: it is one itself."""
    characters: Callable[[str], str] = str
    """From a text to its characters in this place of the file."""


class TextPlaces:
    """The texts of a file and their places."""

    def __init__(self, file: GivenFile) -> None:
        """``CorpusError`` if files of this form cannot be written back."""
        if file.form not in (*_PIECES, "parquet"):
            raise CorpusError(
                f"{file.name!r} is {FORMS[file.form][0]}: its texts cannot be written back. Leave out --write-back, or "
                "give plain text, a table, JSON, Parquet or subtitles"
            )
        self._file = file
        with open(file.path, "rb") as stream:
            self._encoding = file.encoding or _MARKS.get(stream.read(2), "utf-8")

    def texts(self) -> Iterator[PlacedText]:
        """All texts, in the order of the file; ``CorpusError`` if it cannot be read or has none."""
        pieces = self._column() if self._file.form == "parquet" else self._pieces()
        found = [piece for piece in pieces if isinstance(piece, PlacedText)]
        if not found:
            raise CorpusError(
                f"{self._file.name!r} has no text field {self._file.text_field!r}. Name one: --text-field"
            )
        return iter(found)

    def other_fields(self) -> set[str]:
        """Names of all fields but the text; empty for a form without fields."""
        file, found = self._file, set[str]()
        if file.form in ("csv", "tsv"):
            found = table_columns(file)
        elif file.form == "parquet":
            found = parquet_columns(file)
        elif file.form in ("json", "jsonl"):
            records = json_lines(file) if file.form == "jsonl" else entries_of(json_value(file))
            found = {name for _, record in records for name in fields_of(record)}
        return found - {file.text_field, f"{file.text_field}.text"}

    def write(self, output: Path, new: Callable[[str], str]) -> None:
        """Write a copy; ``new`` gives the text in place of each of ``texts()``, in their order."""
        if self._file.form == "parquet":
            self._write_column(output, new)
            return
        with open(output, "w", encoding=self._encoding, newline="") as stream:
            for piece in self._pieces():
                stream.write(piece if isinstance(piece, str) else piece.characters(new(piece.text)))

    def _pieces(self) -> "Pieces":
        try:
            with open(self._file.path, encoding=self._encoding, newline="") as stream:
                text = stream.read()
        except (UnicodeDecodeError, LookupError):
            raise CorpusError(f"{self._file.name!r} is not {self._encoding.upper()}. Name its --encoding") from None
        yield text[: text.startswith("\ufeff")]
        yield from _PIECES[self._file.form](self._file, text.removeprefix("\ufeff"))

    def _column(self) -> Iterator[PlacedText]:
        import pyarrow.parquet

        file = self._file
        columns = [file.text_field, *filter(None, [file.document_field])]
        with file.parsed(), pyarrow.parquet.ParquetFile(file.path) as table:
            for name in columns:
                if name not in table.schema_arrow.names:
                    raise CorpusError(f"{file.name!r} has no column {name!r} (nested ones cannot be written back)")
            for batch in table.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    if isinstance(row[file.text_field], str):
                        yield PlacedText(row[file.text_field], row.get(file.document_field))

    def _write_column(self, output: Path, new: Callable[[str], str]) -> None:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(self._file.path)
        place = table.schema.get_field_index(self._file.text_field)
        field = table.schema.field(place)
        column = [new(old) if isinstance(old, str) else old for old in table.column(place).to_pylist()]
        pyarrow.parquet.write_table(table.set_column(place, field, pyarrow.array(column, field.type)), output)


def lines_of(text: str) -> list[str]:
    """Lines and line ends of a text in turn, beginning with a line; together they are the text."""
    return _LINE_END.split(text)


Pieces = Iterator[str | PlacedText]


def _lines(text: str) -> list[str]:
    """The lines of a text with their line ends, as a file has them: no other separator ends one."""
    return list(io.StringIO(text, newline=""))


def _plain(file: GivenFile, text: str) -> Pieces:
    for line in _lines(text):
        yield PlacedText(line.rstrip("\r\n"))
        yield line[len(line.rstrip("\r\n")) :]


def _json_lines(file: GivenFile, text: str) -> Pieces:
    for number, line in enumerate(_lines(text), start=1):
        try:
            record = read_json_line(line) if line.strip() else None
        except NoJson as error:
            raise CorpusError(f"{file.name!r}: line {number} {error}") from None
        names = values_of(record, file.document_field) if file.document_field else []
        yield from _strings(line, {file.text_field, f"{file.text_field}.text"}, names[0] if names else None)


def _json(file: GivenFile, text: str) -> Pieces:
    """The strings of a field, also below an outer array or object: ``[{"text": ...}]``, ``{"tickets": [...]}``."""
    if file.document_field:
        raise CorpusError(f"{file.name!r}: JSON with --document-field cannot be written back. Write it as JSON lines")
    whole = json_value(file)
    outer = [key for key, value in whole.items() if isinstance(value, list)] if isinstance(whole, dict) else []
    fields = [file.text_field, f"{file.text_field}.text"]
    wanted = {*fields, *(f"{key}.{field}" for key in outer for field in fields), *([""] if fields[0] == "text" else ())}
    yield from _strings(text, wanted, None)


def _strings(text: str, wanted: set[str], document: object) -> Pieces:
    """The strings of JSON whose keys, joined by dots, are ``wanted``."""
    keys: list[str | None] = []
    begin, is_key = 0, False
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in ("{", "["):
            keys.append("" if sign == "{" else None)
        elif sign in ("}", "]"):
            keys.pop()
        elif sign not in (",", ":"):
            if is_key:
                keys[-1] = json.loads(sign)
            elif ".".join(key for key in keys if key is not None) in wanted:
                yield text[begin : token.start()]
                yield PlacedText(json.loads(sign), document, partial(_quoted, sign))
                begin = token.end()
        is_key = sign == "{" or (sign == "," and keys[-1] is not None)
    yield text[begin:]


def _quoted(old: str, new: str) -> str:
    """A text as a string of JSON, with escapes as the old one has them."""
    return old if new == json.loads(old) else json.dumps(new, ensure_ascii=old.isascii())


def _table(file: GivenFile, text: str) -> Pieces:
    """The cells of a column, of rows that end where a line ends outside of quotation marks."""
    form = dialect(file)
    mark, quotes = form["delimiter"], form.get("quoting") != csv.QUOTE_NONE
    plain = f"[^{re.escape(mark)}\r\n]*"
    cell = re.compile(f'(?:"(?:[^"]|"")*+"|(?!")){plain}' if quotes else plain)
    line_end = re.compile("\r?\n?")
    columns: list[str] | None = None
    begin = 0
    while begin < len(text):
        spans: list[tuple[int, int]] = []
        end = begin
        while not spans or text.startswith(mark, spans[-1][1]):
            found = cell.match(text, spans[-1][1] + 1 if spans else begin)
            if found is None:
                raise CorpusError(f"{file.name!r}: a quotation mark of the last row has no other half. Add it")
            spans.append(found.span())
        if rest := line_end.match(text, spans[-1][1]):
            end = rest.end()
        try:
            values = next(csv.reader([text[begin:end]], **form), [])
        except csv.Error as error:
            raise CorpusError(f"{file.name!r} has a row that is none of a table: {error}") from None
        if columns is None:
            columns = values
            if absent := {file.text_field, file.document_field or file.text_field} - {*columns}:
                raise CorpusError(f"{file.name!r} has no column {min(absent)!r}. Name another field")
        elif values:
            place = columns.index(file.text_field)
            if len(values) <= place or len(values) != len(spans):
                raise CorpusError(f"{file.name!r} has a row without the column {file.text_field!r}. Correct the row")
            document = dict(zip(columns, values, strict=False)).get(file.document_field or "")
            start, stop = spans[place]
            yield text[begin:start]
            yield PlacedText(values[place], document, partial(_cell, text[start:stop], values[place], mark, quotes))
            begin = stop
        yield text[begin:end]
        begin = end


def _cell(old: str, text: str, mark: str, quotes: bool, new: str) -> str:
    """A text as a cell, quoted if the old one is or if it must be."""
    if new == text:
        return old
    if quotes and (old.startswith('"') or re.search(f'[{re.escape(mark)}"\r\n]', new)):
        return '"' + new.replace('"', '""') + '"'
    return new


def _subtitles(file: GivenFile, whole: str) -> Pieces:
    """Also comments and names of cues are texts. Speakers get numbers."""
    held = _lines(whole)
    named = Counter(found.group(1) for line in held if (found := NAMED.match(line)))
    speakers: dict[str, str] = {}

    def numbered(name: str) -> str:
        return speakers.setdefault(name, f"Speaker {len(speakers) + 1}")

    style = False
    for line in held:
        text = line.rstrip("\r\n")
        style = bool(text) and (style or text.startswith(("WEBVTT", "STYLE", "REGION")))
        if style or TIMES.match(text) or text.strip().isdecimal():
            yield line
            continue
        begin, found = 0, NAMED.match(text)
        if found and named[found.group(1)] > 1:
            begin = found.end()
            yield numbered(found.group(1)) + text[found.end(1) : begin]
        for tag in TAG.finditer(text, begin):
            yield _of_cue(text[begin : tag.start()], file)
            voice = VOICE.fullmatch(tag.group())
            yield f"<v {numbered(voice.group(1))}>" if voice else tag.group()
            begin = tag.end()
        yield _of_cue(text[begin:], file)
        yield line[len(text) :]


def _of_cue(characters: str, file: GivenFile) -> PlacedText:
    return PlacedText(html.unescape(characters), file.name, partial(_escaped, characters))


def _escaped(old: str, new: str) -> str:
    """A text of a cue; with entities if the old one has some."""
    if new == html.unescape(old):
        return old
    return html.escape(new, quote=False) if "&" in old and old != html.unescape(old) else new


_PIECES: dict[str, Callable[[GivenFile, str], Pieces]] = {
    "text": _plain,
    "jsonl": _json_lines,
    "json": _json,
    "csv": _table,
    "tsv": _table,
    "subtitles": _subtitles,
}
