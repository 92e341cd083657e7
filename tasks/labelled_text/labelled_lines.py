"""A labelled file: JSON lines ``{"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}``.

Offsets count characters (Unicode code points) of the text, ``end`` is one past the last one. A span may have its own
``text``, and is refused if the text at its offsets differs. Spans may overlap or nest, in any order. Other keys are
allowed and ignored, except a line's ``template`` and ``document`` (an id). Lines end at ``\\n`` or ``\\r\\n``; a byte
order mark at the start and blank lines at the end are ignored. A blank line before the last labelled one is an error:
programs that skip it would count the later lines differently.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import NoJson, line_writer, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.languages.segmentation import UNSPACED

NAMED_LINES = 20
"""Most bad lines that an error names; it also has their total number."""
_INSIDE_WORD = re.compile(rf"[^\W_{UNSPACED}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3]{{2}}")
"""Two letters or digits of a script that divides words by spaces; in Korean a particle follows a name without one."""


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """One labelled span of a text."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character; greater than ``start``."""
    label: str
    """Label in the file; never empty."""


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line of a labelled file."""

    text: str
    """Text of the line; it may contain line ends."""
    spans: tuple[LabelledSpan, ...]
    """Labelled spans, in the order of the file."""
    number: int
    """Line of the file, counted from 1."""
    template: str | None = None
    """Id of the template that made it; ``None`` for text without a template."""
    document: str | None = None
    """Id of the document of the line; ``None`` if every line is a document of its own."""


def read_labelled(path: str | Path) -> Iterator[LabelledLine]:
    """Each line of a labelled file; memory does not grow with the file.

    After the first bad line nothing more is yielded: the rest is only checked. Raises ``CorpusError`` that names all
    bad lines by number, each with its reason (the first 20 and the count), and if the file is missing, not UTF-8 or has
    no labelled line. It never quotes text.
    """
    name = str(path)
    bad: list[tuple[int, str]] = []
    bad_lines = lines = 0
    blank: list[int] = []
    for number, raw in enumerate(read_lines(path, "labelled file"), start=1):
        if not raw.strip():
            blank.append(number)
            continue
        for line_number in blank:
            bad_lines += 1
            bad = [*bad, (line_number, "is blank")] if len(bad) < NAMED_LINES else bad
        blank.clear()
        line, reason = _parse(raw, number)
        lines += 1
        if line is None:
            bad_lines += 1
            if len(bad) < NAMED_LINES:
                bad.append((number, reason))
        elif not bad_lines:
            yield line
    if bad_lines:
        named = "; ".join(f"line {number}: {reason}" for number, reason in bad)
        more = f"; and {bad_lines - len(bad)} more" if bad_lines > len(bad) else ""
        counted = f"{bad_lines} bad line" + ("s" if bad_lines > 1 else "")
        raise CorpusError(
            f"{name}: {counted}: {named}{more}; a line is "
            '{"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}'
        )
    if not lines:
        raise CorpusError(f"labelled file {name!r} is empty; it needs at least one line")


def span_warnings(lines: Iterable[LabelledLine]) -> list[str]:
    """Warnings about spans that share characters, and about spans that cover no whole words."""
    shared = spans = cut = whole = 0
    for line in lines:
        end = 0
        for span in sorted(line.spans, key=lambda span: span.start):
            shared += span.start < end
            end = max(end, span.end)
            spans += 1
            if _cuts(line.text, span.start, span.end):
                cut += 1
                whole += not _cuts(line.text, _from_utf16(line.text, span.start), _from_utf16(line.text, span.end))
    found = [f"{shared:,} spans overlap another one, and each counts for itself"] if shared else []
    if cut:
        utf16 = f"; as UTF-16 code units {whole:,} of these would not" if whole else ""
        found.append(
            f"{cut:,} of {spans:,} spans begin or end at a blank or inside a word{utf16}: offsets must count Unicode "
            "code points"
        )
    return found


def _cuts(text: str, start: int, end: int) -> bool:
    covered = text[start:end]
    inside = any(place and _INSIDE_WORD.match(text, place - 1) for place in (start, end))
    return inside or covered != covered.strip() or not covered


def _from_utf16(text: str, offset: int) -> int:
    """The number of characters before an offset that counts UTF-16 code units."""
    return len(text.encode("utf-16-le")[: 2 * offset].decode("utf-16-le", errors="ignore"))


def write_labelled(path: str | Path, lines: Iterable[LabelledLine], *, private: bool = False) -> None:
    """Write labelled lines to a file. ``number`` is not written: it is the line's position."""
    with line_writer(path, private=private) as stream:
        for line in lines:
            record: dict[str, Any] = {
                "text": line.text,
                "spans": [{"start": span.start, "end": span.end, "label": span.label} for span in line.spans],
            }
            if line.template is not None:
                record["template"] = line.template
            if line.document is not None:
                record["document"] = line.document
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def _parse(raw: str, number: int) -> tuple[LabelledLine | None, str]:
    """The line, or ``None`` and the reason why it is malformed."""
    try:
        record = read_json_line(raw)
    except NoJson as error:
        return None, str(error)
    if not isinstance(record, dict):
        return None, "is not a JSON object"
    missing = [key for key in ("text", "spans") if key not in record]
    if missing:
        return None, f"has no key {missing[0]!r}"
    text, records = record["text"], record["spans"]
    if not isinstance(text, str):
        return None, "'text' is not a string"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return None, "'text' holds half of a surrogate pair"
    if not isinstance(records, list):
        return None, "'spans' is not a list"
    template, document = record.get("template"), record.get("document")
    spans = []
    for position, span in enumerate(records, start=1):
        reason = _why_not_a_span(span, text)
        if reason:
            return None, f"span {position} {reason}"
        spans.append(LabelledSpan(span["start"], span["end"], span["label"]))
    if document is not None and (isinstance(document, bool) or not isinstance(document, str | int)):
        return None, "'document' is neither a string nor an integer"
    line = LabelledLine(
        text,
        tuple(spans),
        number,
        template if isinstance(template, str) else None,
        None if document is None else str(document),
    )
    return line, ""


def _why_not_a_span(span: object, text: str) -> str:
    """The error in one span of a text; empty if there is none."""
    if not isinstance(span, dict):
        return "is not a JSON object"
    for key in ("start", "end", "label"):
        if key not in span:
            return f"has no key {key!r}"
    for key in ("start", "end"):
        # A JSON true is a Python int; it is no offset.
        if not isinstance(span[key], int) or isinstance(span[key], bool):
            return f"has a {key!r} that is not an integer"
    if not isinstance(span["label"], str) or not span["label"].strip():
        return "has a 'label' that is not a name"
    start, end = span["start"], span["end"]
    if start < 0:
        return f"starts at {start}, before the text"
    if start >= end:
        return f"is empty: it starts at {start} and ends at {end}"
    own = span.get("text")
    if end <= len(text) and (not isinstance(own, str) or own == text[start:end]):
        return ""
    wrong = f"ends at {end}, after the end of the text ({len(text)} characters)"
    if end <= len(text):
        wrong = "has another 'text' than is at its offsets, which must count Unicode code points"
    if own == text[_from_utf16(text, start) : _from_utf16(text, end)]:
        wrong += "; it fits if they count UTF-16 code units"
    return wrong
