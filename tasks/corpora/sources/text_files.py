"""A user's own text: plain text, mail, JSON lines, CSV, TSV or Parquet, one file or a folder of them.

``mail`` reads messages; each is a document.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, Literal

from tasks.corpora.other_forms import FORMS, LOOKED_AT, refuse_form
from tasks.corpora.parquet_lines import open_parquet, parquet_batches, parquet_files
from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import PARTS, Document, Part, split_sentences
from tasks.corpora.sources.mail import mail_documents
from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.files.atomic_file import is_parquet
from tasks.settings.base import SourcePath

_PLAIN = {"text": "plain text", "mail": "mail"}


NAMED_FIELD = "name it with text_field, or with --text-field of 'palimpsest try' and 'palimpsest init'"
"""Advice for records whose text is in another field."""


def endings_of(paths: Iterable[str]) -> list[str]:
    """The endings of file names, each once, in order."""
    return sorted({Path(path).suffix or "names without one" for path in paths})


def files_left_out(paths: Sequence[str]) -> str:
    """A warning about files that are not read."""
    return f"{len(paths)} files are left out, for their names end in {', '.join(endings_of(paths))}"


class FilesCorpus(CorpusSettings):
    """A user's own files, versioned with ``palimpsest add``."""

    kind: Literal["files"]
    source: SourcePath
    """A text file (one sentence a line), mail (``.eml``, ``.mbox``), JSON lines, CSV, TSV or Parquet file, or a folder
    of such. The first row of CSV and TSV names the columns. CSV has commas, semicolons or tabs between columns. A
    quotation mark in TSV is text, unless quoted cells contain line ends or doubled marks. Files named ``train.*``,
    ``valid.*`` and ``test.*`` in a folder are those parts; missing parts are split off the rest."""
    format: Literal["auto", "text", "jsonl", "csv", "tsv", "parquet", "mail"] = "auto"
    """``auto`` goes by the ending of the file name. Of mail, the text is read, sentence by sentence, without quotes and
    headers."""
    text_field: str = "text"
    """Field of JSON lines, or column, that holds the text."""
    document_field: str | None = None
    """Field or column that names the document, so that no document is divided between parts. A mail is one."""
    label_field: str | None = None
    """Field or column with a label, such as a sentiment, for the lines of its text. A private corpus stores it in
    ``train.labels`` (see ``compare.conclusions``)."""
    documents: Literal["lines", "files"] = "lines"
    """``files``: the lines of a plain text file are one document."""
    split: bool = False
    """Whether lines, records and rows have several sentences, to be split by the rules for English; mails always do."""
    parts: Literal["auto", "given"] = "auto"
    """``given``: a folder with only ``train.*``, ``valid.*`` and ``test.*``, which stay these parts: valid and test
    whole, of train at most ``train_sentences``, drawn by the seed. ``auto``: files with these names are the parts, and
    missing parts are split off."""

    def open(self) -> "TextFiles":
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        return TextFiles(self)


def _one_sentence(text: str) -> list[str]:
    return [text]


class TextFiles:
    """The source ``kind: files``.

    Every line of a text file, every record and every row is a document of its own. ``document_field`` groups
    neighbouring lines instead, and ``documents`` makes a file one document. A mail is always a document.
    """

    def __init__(self, settings: FilesCorpus) -> None:
        source = settings.source
        self._format, self._text_field = settings.format, settings.text_field
        self._document_field, self._documents = settings.document_field, settings.documents
        self._label_field = settings.label_field
        self.labelled = settings.label_field is not None
        """Whether its documents have labels."""
        self._sentences_of = split_sentences if settings.split else _one_sentence
        self.ignored: list[str] = []
        """Files of the folder that are not read, because of their name endings."""
        self._paths = self._find(Path(source))
        self.files = [str(path) for path in self._paths]
        if settings.parts == "given":
            self._check_parts(source)
        self.parts = tuple({self._part(path) for path in self._paths})

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """The documents of the files of one part, files in the order of their paths."""
        for path in self._paths:
            if self._part(path) != part:
                continue
            if self._label_field is not None:
                for name, text, label in self._records(path):
                    yield Document(self._sentences_of(text), part, name, label=label)
                continue
            if self._format_of(path) == "mail":
                yield from mail_documents(path, part)
                continue
            pairs = ((name, text) for name, text, _ in self._records(path))
            if self._documents == "files" and self._format_of(path) == "text":
                yield Document([sentence for _, text in pairs for sentence in self._sentences_of(text)], part)
            elif self._document_field is None:
                for _, text in pairs:
                    yield Document(self._sentences_of(text), part)
            else:
                for name, group in groupby(pairs, key=lambda pair: pair[0]):
                    yield Document([one for _, text in group for one in self._sentences_of(text)], part, name)

    def fields(self) -> set[str] | None:
        """The fields of the first record of the first file, or the columns; ``None`` for plain text and mail."""
        path = self._paths[0]
        form = self._format_of(path)
        if form in _PLAIN:
            return None
        if form == "parquet":
            with open_parquet(path) as table:
                return set(table.schema_arrow.names)
        if form != "jsonl":
            return set(_columns(path, form))
        first = next((record for _, record in _json_records(path)), {})
        if not isinstance(first, dict):
            raise CorpusError(f"{str(path)!r}: the first line is no JSON object; give one record a line")
        return {name for name, value in first.items() if not isinstance(value, list | dict)}

    def _part(self, path: Path) -> Part | None:
        """The part in the name of a file of a folder."""
        if len(self._paths) == 1:
            return None
        return next((part for part in PARTS if path.name.split(".")[0] == part), None)

    def _check_parts(self, source: str) -> None:
        missing = [part for part in PARTS if part not in map(self._part, self._paths)]
        if missing:
            raise CorpusError(
                f"source {source!r} has no file named {' or '.join(f'{part}.*' for part in missing)}; with parts: "
                "given it must be a folder with train.*, valid.* and test.* (parts: auto splits off what is missing)"
            )
        others = [path for path in self._paths if self._part(path) is None]
        if others:
            raise CorpusError(
                f"source {source!r} holds {others[0].name!r}, which is none of train.*, valid.* and test.*; "
                "with parts: given take it out of the folder, or let parts be auto"
            )

    def _find(self, source: Path) -> list[Path]:
        if not source.exists():
            raise CorpusError(
                f"source {str(source)!r} does not exist; give a file that ends in {', '.join(FORMS)}, or a folder "
                "of such"
            )
        if not source.is_dir():
            return [source]
        if is_parquet(source):
            return parquet_files(source)
        paths: list[Path] = []
        ignored: list[Path] = []
        for path in sorted(source.rglob("*")):
            if path.is_file() and not any(piece.startswith(".") for piece in path.relative_to(source).parts):
                known = path.suffix.lower() in FORMS or self._format != "auto"
                (paths if known else ignored).append(path)
        self.ignored = list(map(str, ignored))
        if not paths:
            there = f"; there are {', '.join(endings_of(self.ignored))}" if ignored else ""
            raise CorpusError(f"folder {str(source)!r} holds no file that ends in {', '.join(FORMS)}{there}")
        return paths

    def _format_of(self, path: Path) -> str:
        if self._format != "auto":
            return self._format
        return FORMS.get(path.suffix.lower(), "text")

    def _records(self, path: Path) -> Iterator[tuple[object, str, str | None]]:
        """Document name, text and label of every record."""
        form = self._format_of(path)
        if form in ("text", "mail"):
            if (field := self._label_field or self._document_field) is not None:
                raise CorpusError(f"{str(path)!r} is {_PLAIN[form]} and has no field {field!r}")
            lines = read_lines(path)
            if self._format == "auto":
                first = list(islice(lines, LOOKED_AT))
                refuse_form(path, first)
                lines = chain(first, lines)
            yield from ((None, line, None) for line in lines)
        elif form == "parquet":
            yield from self._parquet_records(path)
        else:
            read = _json_records(path) if form == "jsonl" else _table_records(path, form)
            for number, record in read:
                yield self._fields(record, f"{str(path)!r}: line {number}")

    def _fields(self, record: object, where: str) -> tuple[object, str, str | None]:
        if not isinstance(record, dict) or not isinstance(record.get(self._text_field), str):
            raise CorpusError(f"{where} has no text field {self._text_field!r}; {NAMED_FIELD}")
        for field in (self._document_field, self._label_field):
            if field is not None and record.get(field) is None:
                raise CorpusError(f"{where} has no field {field!r}")
        return (
            record[self._document_field] if self._document_field else None,
            record[self._text_field],
            _one_line(record[self._label_field]) if self._label_field else None,
        )

    def _parquet_records(self, path: Path) -> Iterator[tuple[object, str, str | None]]:
        columns = [self._text_field, *filter(None, (self._document_field, self._label_field))]
        row = 0
        for batch in parquet_batches(path, columns):
            for record in batch.to_pylist():
                row += 1
                if not isinstance(record[self._text_field], str):
                    raise CorpusError(f"{str(path)!r}: row {row}: column {self._text_field!r} holds no text")
                yield self._fields(record, f"{str(path)!r}: row {row}")


def _one_line(label: object) -> str:
    """The label on one line."""
    return " ".join(str(label).split())


def _json_records(path: Path) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            yield number, read_json_line(line)
        except NoJson as error:
            raise CorpusError(f"{str(path)!r}: line {number} {error}") from None


def _table_records(path: Path, form: str) -> Iterator[tuple[int, object]]:
    """The rows after the first one, as dictionaries, each with the number of its last line."""
    rows = csv.DictReader(_rows_of(path), **_dialect(path, form))
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise CorpusError(f"{str(path)!r}: line {rows.line_num} is no row of a table: {error}") from None


def _rows_of(path: Path) -> Iterator[str]:
    return (f"{line}\n" for line in read_lines(path))


def _columns(path: Path, form: str) -> list[str]:
    """The cells of the first row."""
    return next(csv.reader(_rows_of(path), **_dialect(path, form)), [])


def _dialect(path: Path, form: str) -> dict[str, Any]:
    """The delimiter of the columns, and whether quotation marks quote cells."""
    if form == "csv":
        header = next(_rows_of(path), "")
        parts = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in ",;\t"}
        return {"delimiter": max(parts, key=parts.__getitem__)}
    plain: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    widths = {line.count("\t") for line in _rows_of(path) if line.strip()}
    if len(widths) > 1 or any('""' in line for line in _rows_of(path)):
        # A quotation mark that begins a cell of plain text seldom has its other half at the end of a cell.
        quoted: dict[str, Any] = {"delimiter": "\t", "strict": True}
        try:
            if len({len(row) for row in csv.reader(_rows_of(path), **quoted)} - {0}) == 1:
                return quoted
        except csv.Error:
            pass
    return plain
