"""The private sidecar of a masked corpus: what was masked, where, and by which rule.

JSON lines, one per line of the raw corpus and in its order:
``{"line": 1, "spans": [{"start", "end", "label", "source", "original", "marker"}]}``. Offsets count characters of
the raw line; ``source`` names the technique, detector or rule. ``marker`` of a span is the index of its marker in
the masked line (several spans share one where neighbouring markers are merged).

The sidecar restores the raw text, so it is as private as that: mode 0600, ``push: false`` in DVC, and never in a
log line, a report, an artifact or a tracking record.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.text_lines import line_writer, read_lines
from tasks.errors import CorpusError
from tasks.spelling import nearest

_WHOLE_NUMBERS, _TEXTS = ("start", "end", "marker"), ("label", "source", "original")


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """One masked stretch of a raw line."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    """Class of the span, one of ``masked_text.CLASSES``."""
    source: str
    """Technique, detector or rule that asked for it."""
    original: str
    """The masked text itself: private."""
    marker: int
    """Index of the marker, from 0, that stands for it in the masked line."""


def sidecar_line(number: int, spans: Sequence[MaskedSpan]) -> str:
    """The record of one line of the raw corpus, with its line end."""
    if not spans:
        return f'{{"line": {number}, "spans": []}}\n'
    records = [
        {
            "start": span.start,
            "end": span.end,
            "label": span.label,
            "source": span.source,
            "original": span.original,
            "marker": span.marker,
        }
        for span in spans
    ]
    return json.dumps({"line": number, "spans": records}, ensure_ascii=False) + "\n"


def write_sidecar(path: str | Path, lines: Iterable[Sequence[MaskedSpan]]) -> None:
    """Write the spans of every line (an empty list where nothing was masked), mode 0600."""
    with line_writer(path, private=True) as stream:
        for number, spans in enumerate(lines, start=1):
            stream.write(sidecar_line(number, spans))


def read_sidecar(path: str | Path) -> Iterator[list[MaskedSpan]]:
    """Yield the spans of every line; ``CorpusError`` names the line that does not follow the format."""
    for number, line in enumerate(read_lines(path, "sidecar"), start=1):
        try:
            record = json.loads(line)
            if record["line"] != number:
                raise ValueError
            spans = [_checked_span(span) for span in record["spans"]]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            wrong = f": {error}" if isinstance(error, _WrongField) else ""
            raise CorpusError(f"{str(path)!r}: line {number} is not a sidecar record of line {number}{wrong}") from None
        yield spans


class _WrongField(ValueError):
    """A field of a span has a value that it cannot have."""


def _checked_span(record: dict[str, Any]) -> MaskedSpan:
    span = MaskedSpan(**record)
    for name in _WHOLE_NUMBERS:
        # JSON's true and false are whole numbers to Python.
        if type(getattr(span, name)) is not int or getattr(span, name) < 0:
            raise _WrongField(f"{name!r} is not a whole number from 0")
    for name in _TEXTS:
        if not isinstance(getattr(span, name), str):
            raise _WrongField(f"{name!r} is no text")
    if span.end < span.start:
        raise _WrongField(f"'end' {span.end} is before 'start' {span.start}")
    if span.label not in CLASSES:
        raise _WrongField(
            f"'label' {span.label!r} is not known{nearest(span.label, CLASSES)}; allowed: {', '.join(CLASSES)}"
        )
    return span
