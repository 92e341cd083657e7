"""A user's own text, in one file or a folder: each form of ``tasks.corpora.forms`` has a reader here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Literal, NamedTuple

from tasks.corpora.forms import ENDINGS, FORMS, form_of
from tasks.corpora.parquet_lines import parquet_files
from tasks.corpora.settings import CorpusSettings, Encoding
from tasks.corpora.sources import records
from tasks.corpora.sources.archives import unpacked
from tasks.corpora.sources.chat_exports import chat_units, is_chat_export, whatsapp_units
from tasks.corpora.sources.document import PARTS, Document, Part, Source, split_sentences
from tasks.corpora.sources.given_file import GivenFile, Unit, fields_of
from tasks.corpora.sources.mail import mail_units
from tasks.corpora.sources.prose import prose_units
from tasks.corpora.sources.subtitles import subtitle_units
from tasks.errors import CorpusError
from tasks.files.atomic_file import is_parquet
from tasks.settings.base import SourcePath

_LOOKED_AT = 20
"""Records that show the fields."""


class Reader(NamedTuple):
    """The reader of a form."""

    units: Callable[[GivenFile], Iterator[Unit]]
    read: Callable[[GivenFile], records.Records] | None = None
    """The records with fields; ``None`` for a form without."""
    columns: Callable[[GivenFile], set[str]] | None = None
    """The fields, if they do not need records."""


def _json_units(file: GivenFile) -> Iterator[Unit]:
    value = records.json_value(file)
    return chat_units(value, file) if is_chat_export(value) else file.of_records(records.entries_of(value))


def _of_records(
    read: Callable[[GivenFile], records.Records], columns: Callable[[GivenFile], set[str]] | None = None
) -> Reader:
    return Reader(lambda file: file.of_records(read(file)), read, columns)


READERS = {
    "text": Reader(lambda file: (Unit(None, [line]) for line in file.lines())),
    "jsonl": _of_records(records.json_lines),
    "json": Reader(_json_units, lambda file: records.entries_of(records.json_value(file))),
    "csv": _of_records(records.table_rows, records.table_columns),
    "tsv": _of_records(records.table_rows, records.table_columns),
    "excel": _of_records(records.excel_rows, records.excel_columns),
    "parquet": _of_records(records.parquet_rows, records.parquet_columns),
    "arrow": _of_records(records.arrow_rows, records.arrow_columns),
    "mail": Reader(mail_units),
    "whatsapp": Reader(whatsapp_units),
    "subtitles": Reader(subtitle_units),
    **dict.fromkeys(("html", "markdown", "docx", "pdf"), Reader(prose_units)),
}
_SENTENCES = ("mail", "html", "markdown", "docx", "pdf")
"""Forms whose texts are sentences already."""


def endings_of(paths: Iterable[str]) -> list[str]:
    """The endings of file names, each once, in order."""
    return sorted({Path(path).suffix or "no ending" for path in paths})


def files_left_out(paths: Sequence[str]) -> str:
    """A warning about files that are not read."""
    return f"{len(paths)} files are left out by the ending of their names: {', '.join(endings_of(paths))}"


class FilesCorpus(CorpusSettings):
    """A user's own files, versioned with ``palimpsest add``."""

    kind: Literal["files"]
    source: SourcePath
    """A text file (one sentence a line), or one of the other forms in docs/how-to/own-text.md, or a folder or archive
    of such. The first row of CSV and TSV names the columns. CSV has commas, semicolons, tabs or bars between columns. A
    quotation mark in TSV is text, unless quoted cells contain line ends or doubled marks. Files named ``train.*``,
    ``valid.*`` and ``test.*`` in a folder are those parts; missing parts are split off the rest."""
    format: Literal[
        "auto", "text", "jsonl", "json", "csv", "tsv", "excel", "parquet", "arrow", "mail", "whatsapp", "subtitles",
        "html", "markdown", "docx", "pdf",
    ] = "auto"  # fmt: skip
    """``auto`` goes by the content, and by the ending of the file name where content does not tell. Of mail, the text
    is read, sentence by sentence, without quotes and headers."""
    encoding: Encoding | None = None
    """Encoding of files of text, such as ``cp1252``; ``null``: UTF-8, else guessed from the bytes, with a warning."""
    text_field: str = "text"
    """Field of records, or column, that holds the text; with dots a nested one: ``messages.content``."""
    document_field: str | None = None
    """Field or column that names the document, so that no document is divided between parts. A mail is one."""
    label_field: str | None = None
    """Field or column with a label, such as a sentiment, for the lines of its text. A private corpus stores it in
    ``train.labels`` (see ``compare.conclusions``)."""
    documents: Literal["auto", "lines", "files"] = "auto"
    """``files``: a file is one document. ``lines``: each line, record, message, cue or paragraph is one. ``auto``: that
    of the form, such as the author of a chat, the thread of mail, the file of a PDF; of plain text and records, the
    line or record."""
    split: bool = False
    """Whether lines, records and rows have several sentences, to be split by the rules for English; mails always do."""
    parts: Literal["auto", "given"] = "auto"
    """``given``: a folder with only ``train.*``, ``valid.*`` and ``test.*``, which stay these parts: valid and test
    whole, of train at most ``train_sentences``, drawn by the seed. ``auto``: files with these names are the parts, and
    missing parts are split off."""

    def open(self) -> "TextFiles":
        """The reader; ``CorpusError`` if its files are missing. Archives are unpacked, and no text is read yet."""
        return TextFiles(self)


class TextFiles(Source):
    """The source ``kind: files``.

    ``document_field`` groups neighbouring records, and ``documents`` makes a file or each line a document.
    """

    def __init__(self, settings: FilesCorpus) -> None:
        self._settings = settings
        self.ignored: list[str] = []
        """Files of the folder that are not read, because of their name endings."""
        self._forms: dict[Path, str] = {}
        self._names: dict[Path, str] = {}
        self._unpacked: list[object] = []
        found = self._find(Path(settings.source))
        self._paths = [inside for path in found for inside in self._inside(path)]
        if settings.parts == "given":
            self._check_parts(settings.source)
        parts = tuple({self._part(path) for path in self._paths})
        super().__init__(list(map(str, found)), self._read, parts, settings.label_field is not None)
        self.forms = {self._form(path) for path in self._paths}
        """Forms of the files."""

    def _read(self, part: Part | None) -> Iterator[Document]:
        """The documents of the files of one part, files in the order of their paths."""
        threads: dict[str, str] = {}
        for path in self._paths:
            if self._part(path) == part:
                file = self._given(path)
                file.threads = threads
                yield from self._documents(file, part)
                if file.left_out.total() or file.guessed.total():
                    yield _document(file, part, [])

    def fields(self) -> set[str] | None:
        """The fields of the first records of the first file that has some, or its columns; ``None`` without one."""
        path = next((path for path in self._paths if READERS[self._form(path)].read), None)
        if path is None:
            return None
        file = self._given(path)
        reader = READERS[file.form]
        if reader.columns:
            return reader.columns(file)
        assert reader.read is not None  # of the path that was looked for
        first = [record for _, (_, record) in zip(range(_LOOKED_AT), reader.read(file), strict=False)]
        if first and not isinstance(first[0], dict):
            raise CorpusError(f"{file.name!r}: the first line is no JSON object; give one record a line")
        return None if is_chat_export(first) or (first and is_chat_export(first[0])) else fields_of(first)

    def given_files(self) -> list[GivenFile]:
        """The files, in the order of reading; ``CorpusError`` if they are in an archive."""
        if self._unpacked:
            raise CorpusError(f"{self._settings.source!r} is or holds an archive; unpack it, and give the folder")
        return [self._given(path) for path in self._paths]

    def _given(self, path: Path) -> GivenFile:
        one = self._settings
        asked = (one.text_field, one.document_field, one.label_field, one.encoding)
        return GivenFile(path, self._names.get(path, str(path)), self._form(path), *asked)

    def _documents(self, file: GivenFile, part: Part | None) -> Iterator[Document]:
        settings, units = self._settings, READERS[file.form].units(file)
        has_records = any(READERS[form].read for form in self.forms)
        asked = settings.label_field or (None if has_records else settings.document_field)
        if asked is not None and READERS[file.form].read is None:
            raise CorpusError(f"{file.name!r} is {FORMS[file.form][0]} and has no field {asked!r}")
        splits = settings.split and file.form not in _SENTENCES

        def sentences_of(some: Iterable[Unit]) -> list[str]:
            texts = [text for unit in some for text in unit.texts]
            # An empty text stays one, so that it is counted.
            return [sentence for text in texts for sentence in split_sentences(text) or [""]] if splits else texts

        whole = settings.documents == "files" and not self.labelled and file.form != "mail"
        if whole and settings.document_field is None:
            yield _document(file, part, sentences_of(units))
            return
        names = settings.document_field is not None or settings.documents != "lines"
        unnamed = READERS[file.form].read is not None and file.form != "json" and settings.document_field is None
        alone = file.form in ("text", "mail") or unnamed or self.labelled or not names
        number = count()
        groups = groupby(units, lambda unit: next(number) if unit.name is None else (unit.name,))
        for group in ([unit] for unit in units) if alone else (list(group) for _, group in groups):
            yield _document(file, part, sentences_of(group), group[0].name if names else None, group[0].label)

    def _form(self, path: Path) -> str:
        if self._settings.format != "auto":
            return self._settings.format
        if path not in self._forms:
            self._forms[path] = form_of(path, self._settings.encoding)
        return self._forms[path]

    def _part(self, path: Path) -> Part | None:
        """The part in the name of a file of a folder, or of the folder of a data set of Arrow."""
        if len(self._paths) == 1:
            return None
        name = path.parent.name.replace("validation", "valid") if path.suffix == ".arrow" else path.name.split(".")[0]
        return next((part for part in PARTS if name == part), None)

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
                f"source {str(source)!r} does not exist; give a file that ends in {', '.join(ENDINGS)}, or a folder "
                "of such"
            )
        if not source.is_dir():
            return [source]
        if is_parquet(source):
            return parquet_files(source)
        paths: list[Path] = []
        for path in sorted(source.rglob("*")):
            hidden = any(piece.startswith(".") for piece in path.relative_to(source).parts)
            if hidden or not path.is_file() or _is_about_others(path):
                continue
            if self._is_read(path):
                paths.append(path)
            else:
                self.ignored.append(str(path))
        if not paths:
            there = f"; there are {', '.join(endings_of(self.ignored))}" if self.ignored else ""
            raise CorpusError(f"folder {str(source)!r} holds no file that ends in {', '.join(ENDINGS)}{there}")
        return paths

    def _is_read(self, path: Path) -> bool:
        """Whether a file of a folder is read: by its ending, or if its content is of a form that is no plain text."""
        if self._settings.format != "auto" or path.suffix.lower() in ENDINGS:
            return True
        try:
            return self._form(path) != "text"
        except CorpusError:  # the warning of files that are left out names it
            return False

    def _inside(self, path: Path) -> list[Path]:
        """The files of an archive, unpacked as long as this reader lasts; of another file, itself."""
        if self._settings.format != "auto" or self._form(path) != "archive":
            return [path]
        held, folder = unpacked(path)
        self._unpacked.append(held)
        found = self._find(folder)
        archives = [one for one in found if self._form(one) == "archive"]
        found = [one for one in found if one not in archives]
        self.ignored += map(str, archives)
        if not found:
            raise CorpusError(f"{str(path)!r} holds nothing but archives; unpack it, and give its files")
        self._names |= {one: f"{path}: {one.relative_to(folder)}" for one in found}
        return found


def _document(
    file: GivenFile, part: Part | None, texts: list[str], name: object = None, label: str | None = None
) -> Document:
    """A document with the counts since the one before it."""
    if not file.left_out and not file.guessed:
        return Document(texts, part, name, label=label)
    found = Document(texts, part, name, +file.left_out, label, +file.guessed)
    file.left_out.clear()
    file.guessed.clear()
    return found


def _is_about_others(path: Path) -> bool:
    """Whether a JSON file describes those next to it: in an export of Slack, or a data set of Arrow."""
    if path.suffix.lower() != ".json":
        return False
    of_slack = all((path.parent / name).exists() for name in ("users.json", "channels.json"))
    return of_slack or path.name in ("dataset_info.json", "state.json", "dataset_dict.json")
