"""The private sidecar of a masked corpus: the masked words, their offsets, and the rules that masked them.

JSON lines, one per line of the raw corpus and in its order: ``{"line": 1, "spans": [{"start", "end", "label", "source",
"original", "marker"}]}``. Offsets count characters of the raw line; ``source`` names the technique, detector or rule.
``marker`` of a span is the index of its marker in the masked line (several spans share one where neighbouring markers
are merged).

The sidecar restores the raw text, so it is as private as the text: mode 0600, ``push: false`` in DVC, and never in a
log line, a report, an artifact or a tracking record.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import line_writer, read_lines
from tasks.errors import CorpusError


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """One masked span of a raw line."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    """Class of the span, one of ``masked_text.CLASSES``."""
    source: str
    """Technique, detector or rule that masked it."""
    original: str
    """Masked text itself: private."""
    marker: int
    """Index of its marker in the masked line, from 0."""


def sidecar_line(number: int, spans: Sequence[MaskedSpan]) -> str:
    """The record of one line of the raw corpus, with its line end."""
    if not spans:
        return f'{{"line": {number}, "spans": []}}\n'
    records = [{name: getattr(span, name) for name in MaskedSpan.__slots__} for span in spans]
    return json.dumps({"line": number, "spans": records}, ensure_ascii=False) + "\n"


def write_sidecar(path: str | Path, lines: Iterable[Sequence[MaskedSpan]]) -> None:
    """Write the spans of every line (an empty list for a line without any), mode 0600."""
    with line_writer(path, private=True) as stream:
        for number, spans in enumerate(lines, start=1):
            stream.write(sidecar_line(number, spans))


def read_sidecar(path: str | Path) -> Iterator[list[MaskedSpan]]:
    """The spans of every line; ``CorpusError`` names the line with a wrong format."""
    for number, line in enumerate(read_lines(path, "sidecar"), start=1):
        try:
            record = json.loads(line)
            if record["line"] != number:
                raise ValueError
            spans = [MaskedSpan(**span) for span in record["spans"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CorpusError(f"{str(path)!r}: line {number} is not a sidecar record of line {number}") from None
        yield spans
