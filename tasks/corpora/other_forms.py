"""Detection of files with other content than one sentence a line, by first bytes, name ending or first lines.

Times, keys and markup of such a file would be masked, counted and learned as if somebody had written them.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import CorpusError

FIRST_BYTES = 16
"""Bytes that ``refuse_binary`` reads."""
LOOKED_AT = 20
"""Lines that show the form of a text file."""
_UNPACK = "unpack it, and give what is inside"
_HEARD = "give the text of it; docs/speech.md says how recordings are read"
_BINARY: dict[bytes, tuple[str, str]] = {
    b"%PDF-": ("a PDF document", "save its text as .txt"),
    b"{\\rtf": ("a rich text document", "save it as plain text, UTF-8"),
    b"\xd0\xcf\x11\xe0": ("a document of an older Office", "save it as CSV UTF-8 or as plain text"),
    b"PAR1": ("a Parquet file", "let its name end in .parquet"),
    b"SQLite format 3\x00": ("a database of SQLite", "export the table as CSV"),
    b"\x1f\x8b": ("compressed with gzip", _UNPACK),
    b"BZh": ("compressed with bzip2", _UNPACK),
    b"\xfd7zXZ\x00": ("compressed with xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("compressed with Zstandard", _UNPACK),
    b"7z\xbc\xaf": ("an archive of 7-Zip", _UNPACK),
    b"RIFF": ("a sound recording", _HEARD),
    b"OggS": ("a sound recording", _HEARD),
    b"fLaC": ("a sound recording", _HEARD),
    b"ID3": ("a sound recording", _HEARD),
}
_ZIP = b"PK\x03\x04"
_ZIPPED = {
    "xl/": ("an Excel workbook", "save it as CSV UTF-8"),
    "word/": ("a Word document", "save it as plain text, UTF-8"),
    "ppt/": ("a PowerPoint presentation", "save its text as .txt"),
    "content.xml": ("an OpenDocument file", "save it as CSV or as plain text, UTF-8"),
    "": ("a zip archive", _UNPACK),
}
FORMS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".eml": "mail",
    ".mbox": "mail",
}
"""The form of a file by the ending of its name."""
RECORDS = {"jsonl": "JSON lines", "csv": "a table", "tsv": "a table", "mail": "mail"}
"""Forms without one sentence a line, by their names in errors."""
_SUBTITLES = ("subtitles", "write what is said one sentence a line, without numbers and times")
_JSON = ("JSON", "write one record a line, for example with jq -c '.[]', into a file that ends in .jsonl")
_MARKUP = ("HTML or XML", "save it as plain text")
_CHAT = ("an exported chat", "write its messages one a line, or as CSV with a column 'message'")
_ENDINGS = {".vtt": _SUBTITLES, ".srt": _SUBTITLES, ".json": _JSON, ".html": _MARKUP, ".htm": _MARKUP, ".xml": _MARKUP}
_TIMES = re.compile(r"(\d+:)?\d\d:\d\d[.,]\d{3} --> ")
_OPEN_JSON = re.compile(r'\[\s*(\{|$)|\{\s*("|$)')
_DAY, _HOUR = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}", r"\d{1,2}[:.]\d\d([:.]\d\d)?"
_SENT_AT = re.compile(rf"\u200e?\[?{_DAY},? {_HOUR}[^:]{{0,6}}?(\] | [-\u2013] )")


def refuse_binary(path: str | Path, head: bytes) -> None:
    """Raise ``CorpusError`` with the way to convert a file if its first bytes are not those of text."""
    found = next((form for magic, form in _BINARY.items() if head.startswith(magic)), None)
    if head.startswith(_ZIP):
        import zipfile

        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError):
            names = []
        found = next(form for start, form in _ZIPPED.items() if not start or any(n.startswith(start) for n in names))
    if found is not None:
        raise _refusal(path, found)


def refuse_form(path: str | Path, lines: Sequence[str]) -> None:
    """Raise ``CorpusError`` if the ending or the first lines of a file are those of subtitles, JSON, markup or chat."""
    first = [line.strip() for line in lines[:LOOKED_AT] if line.strip()]
    form = _ENDINGS.get(Path(path).suffix.lower())
    if form is None and first:
        if first[0].startswith("WEBVTT") or any(_TIMES.match(line) for line in first[:4]):
            form = _SUBTITLES
        elif _is_json(first[0]) or _OPEN_JSON.match(first[0]):
            form = _JSON
        elif first[0].lower().startswith(("<!doctype", "<html", "<?xml")):
            form = _MARKUP
        elif _SENT_AT.match(first[0]) or sum(_SENT_AT.match(line) is not None for line in first) > 1:
            form = _CHAT
    if form is not None:
        raise _refusal(path, form)


def refuse_records(path: str | Path, lines: Sequence[str]) -> None:
    """Raise ``CorpusError`` if a file has records, mail or another form instead of one sentence a line."""
    if (form := RECORDS.get(FORMS.get(Path(path).suffix.lower(), ""))) is not None:
        raise CorpusError(
            f"{str(path)!r} is {form}, and one sentence a line is read here. palimpsest.mask and 'palimpsest init' "
            "read such files; or write the text alone into a .txt file"
        )
    refuse_form(path, lines)


def _is_json(line: str) -> bool:
    if not line.startswith(("{", "[")):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    # "[1]" is a footnote.
    return isinstance(value, dict) or (value != [] and isinstance(value[0], dict | list | str))


def _refusal(path: str | Path, form: tuple[str, str]) -> CorpusError:
    return CorpusError(f"{str(path)!r} is {form[0]} and no plain text: {form[1]}")
