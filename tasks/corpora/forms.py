"""Recognition of the form of a file by its content. Its ending decides where content cannot.

Times, keys and markup of other forms than plain text would be masked, counted and learned as if somebody had written
them.
"""

import codecs
import csv
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import CorpusError

FIRST_BYTES = 1 << 16
"""Bytes that show the form of a file."""
LOOKED_AT = 20
"""Lines that show the form of a text file."""
TEXT_FIELDS = ("text", "body", "content", "message", "sentence", "utterance")
"""Names of fields with text that are looked for, in this order."""
FORMS = {
    "text": ("plain text", ".txt .text"),
    "jsonl": ("JSON lines", ".jsonl .ndjson"),
    "json": ("JSON", ".json"),
    "csv": ("a table", ".csv"),
    "tsv": ("a table", ".tsv"),
    "excel": ("an Excel workbook", ".xlsx .xlsm"),
    "parquet": ("a Parquet file", ".parquet"),
    "arrow": ("a data set of Arrow", ".arrow"),
    "mail": ("mail", ".eml .mbox"),
    "whatsapp": ("an exported chat", ""),
    "subtitles": ("subtitles", ".vtt .srt"),
    "html": ("HTML", ".html .htm"),
    "markdown": ("Markdown", ".md .markdown"),
    "docx": ("a Word document", ".docx"),
    "pdf": ("a PDF document", ".pdf"),
    "archive": ("an archive or compressed", ".zip .tar .tgz .gz .bz2 .xz .zst"),
}
"""The forms that are read, by the names of the setting ``format``: the name in errors, and endings of file names."""
ENDINGS = {ending: form for form, (_, endings) in FORMS.items() for ending in endings.split()}
_BY_ENDING = ("csv", "tsv", "mail", "markdown")
"""Forms whose ending is believed: text of any other form can be in them."""
_HEARD = ("a sound recording or film", "give the text of it; docs/speech.md says how recordings are read")
_SEEN = ("a picture", "give the text in it")
_MAGIC: dict[bytes, str | tuple[str, str]] = {
    **dict.fromkeys((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"), "archive"),
    **dict.fromkeys((b"ARROW1", b"\xff\xff\xff\xff"), "arrow"),
    **dict.fromkeys((b"RIFF", b"OggS", b"fLaC", b"ID3", b"\xff\xfb", b"\x1aE\xdf\xa3"), _HEARD),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), _SEEN),
    b"PAR1": "parquet",
    b"%PDF-": "pdf",
    b"7z\xbc\xaf": ("an archive of 7-Zip", "unpack it, and give its files"),
    b"{\\rtf": ("a rich text document", "save it as .docx or as plain text"),
    b"SQLite format 3\x00": ("a database of SQLite", "give it as sqlite:///FILE, with --query"),
}
_OFFICE, _PROTECTED = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")
_ZIPPED: dict[str, str | tuple[str, str]] = {
    "xl/": "excel",
    "word/": "docx",
    "ppt/": ("a PowerPoint presentation", "save its text as .txt"),
    "content.xml": ("an OpenDocument file", "save it as .xlsx, .docx or CSV"),
    "": "archive",
}
_TAR = slice(257, 262)
"""Place of the mark of tar."""
_TIMES = re.compile(r"(\d+:)?\d\d:\d\d[.,]\d{3} --> ")
_OPEN_JSON = re.compile(r'\[\s*(\{|$)|\{\s*("|$)')
_DAY, _HOUR = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}", r"\d{1,2}[:.]\d\d([:.]\d\d)?"
SENT_AT = re.compile(rf"[\u200e\ufeff]*\[?{_DAY},? {_HOUR}[^:]{{0,6}}?(\] | [-\u2013] )")
"""Day and hour at the beginning of a message of WhatsApp, as Android or iOS write them."""
_FIELD = re.compile(r"([!-9;-~]+):( |$)")
_MAIL_FIELDS = frozenset("from to cc subject date message-id received mime-version content-type reply-to".split())
_UTF16 = ("text in UTF-16 without its mark", "name it, as in --encoding utf-16-le, or save it as UTF-8")


def form_of(path: str | Path, encoding: str | None = None) -> str:
    """The form of a file, one of ``FORMS``; ``CorpusError`` with the remedy if nothing can be read in it."""
    ending = ENDINGS.get(Path(path).suffix.lower())
    with open(path, "rb") as stream:
        head = stream.read(FIRST_BYTES)
    if (binary := _binary(path, head)) is not None:
        return binary
    if ending in ("excel", "parquet", "arrow", "docx", "pdf"):
        return ending  # its reader says that it is none
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if encoding is None and not is_utf16 and head.count(b"\0") > len(head) // 3:
        raise _refusal(path, _UTF16)
    text = head.decode("utf-16" if is_utf16 else encoding or "utf-8-sig", errors="replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")[:LOOKED_AT]]
    return _form_of_lines(path, ending, [line for line in lines if line.strip()], text)


def _form_of_lines(path: str | Path, ending: str | None, lines: Sequence[str], text: str) -> str:
    first = lines[0].strip() if lines else ""
    if ending in _BY_ENDING or not first:
        return ending or "text"
    if ending in ("json", "jsonl") or _is_json(first) or _OPEN_JSON.match(first):
        several = len(lines) > 1 and _is_json(first) and not first.startswith("[")
        if ending == "jsonl":
            return "json" if _OPEN_JSON.match(first) and first.startswith("[") else ending
        return "jsonl" if several and _is_json(lines[1].strip()) else "json"
    if first.startswith("WEBVTT") or any(_TIMES.match(line) for line in lines[:4]):
        return "subtitles"
    is_xml = first.startswith("<?xml") or path_ends(path, ".xml")
    if first.lower().startswith(("<!doctype html", "<html")) or (is_xml and "<html" in text[:2000]):
        return "html"
    if is_xml:
        raise _refusal(path, ("XML", "write its text as JSON lines or plain text"))
    if SENT_AT.match(first) or sum(SENT_AT.match(line) is not None for line in lines) > 1:
        return "whatsapp"
    if _is_mail(lines, text):
        return "mail"
    if ending in (None, "text") and _is_table(lines):
        return "csv"
    return ending or "text"


def path_ends(path: str | Path, *endings: str) -> bool:
    """Whether a file's name has one of the endings, in any case."""
    return Path(path).suffix.lower() in endings


def refuse_binary(path: str | Path, head: bytes) -> None:
    """Raise ``CorpusError`` if the first bytes of a file are not those of text."""
    if (form := _binary(path, head)) is not None:
        raise _no_lines(path, form)


def refuse_records(path: str | Path) -> None:
    """Raise ``CorpusError`` if a file has another form than one sentence a line."""
    if (form := form_of(path)) != "text":
        raise _no_lines(path, form)


def _binary(path: str | Path, head: bytes) -> str | None:
    """The form by the first bytes, ``None`` for text; ``CorpusError`` if nothing can be read in it."""
    found = next((form for magic, form in _MAGIC.items() if head.startswith(magic)), None)
    if head[4:8] == b"ftyp" and head.startswith(b"\0"):
        found = _HEARD
    elif head.startswith(_OFFICE):
        with open(path, "rb") as stream:
            protected = _PROTECTED in stream.read(1 << 24)
        found = ("a document of an older Office", "save it as .xlsx, .docx or CSV")
        if protected:
            found = ("protected by a password", "save a copy without one")
    elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        found = _ZIPPED[_kind_of_zip(path)]
    elif head[_TAR] == b"ustar" and b"\0" in head:
        found = "archive"
    if isinstance(found, tuple):
        raise _refusal(path, found)
    return found


def _kind_of_zip(path: str | Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return ""
    return next(start for start in _ZIPPED if any(name.startswith(start) for name in names) or not start)


def _is_json(line: str) -> bool:
    if not line.startswith(("{", "[")):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    # "[1]" is a footnote.
    return isinstance(value, dict) or (value != [] and isinstance(value[0], dict | list | str))


def _is_mail(lines: Sequence[str], text: str) -> bool:
    """Whether a text begins with the header of a message and an empty line; in an mbox, after the line *From*."""
    header = list(lines[1:] if lines[0].startswith("From ") else lines)
    fields = [match.group(1).lower() for line in header if (match := _FIELD.match(line))]
    is_whole = bool(header and _FIELD.match(header[0])) and "\n\n" in text.replace("\r", "")
    return is_whole and len(_MAIL_FIELDS.intersection(fields)) > 1


def _is_table(lines: Sequence[str]) -> bool:
    """Whether the first line names columns, one of them as text is called, and the others have as many cells."""
    for mark in ",;\t|":
        try:
            rows = list(csv.reader((f"{line}\n" for line in lines), delimiter=mark))
        except csv.Error:
            continue
        names = [cell.strip().lower() for cell in rows[0]]
        whole = rows[1:-1] or rows[1:]
        if len(set(names)) == len(names) > 1 and set(names) & set(TEXT_FIELDS) and whole:
            return all(len(row) == len(names) for row in whole) and all(0 < len(name) < 40 for name in names)
    return False


def _no_lines(path: str | Path, form: str) -> CorpusError:
    return CorpusError(
        f"{str(path)!r} is {FORMS[form][0]}, and one sentence a line is read here. palimpsest.mask and "
        "'palimpsest init' read such files; or write the text alone into a .txt file"
    )


def _refusal(path: str | Path, form: tuple[str, str]) -> CorpusError:
    return CorpusError(f"{str(path)!r} is {form[0]} and cannot be read: {form[1]}")
