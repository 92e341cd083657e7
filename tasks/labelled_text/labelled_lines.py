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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

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
    bad: list[str] = []
    lines = bad_lines = 0
    for line in _parsed_lines(path):
        lines += 1
        if isinstance(line, str):
            bad_lines += 1
            bad += [line] if bad_lines <= NAMED_LINES else []
        elif not bad_lines:
            yield line
    if bad:
        more = f"; and {bad_lines - NAMED_LINES} more" if bad_lines > NAMED_LINES else ""
        raise CorpusError(
            f"{path}: {bad_lines} bad line{'s' if bad_lines > 1 else ''}: {'; '.join(bad)}{more}; a line is "
            '{"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}'
        )
    if not lines:
        raise CorpusError(f"labelled file {str(path)!r} is empty; it needs at least one line")


def _parsed_lines(path: str | Path) -> Iterator[LabelledLine | str]:
    """Each line of a file, or its number and what is wrong with it."""
    blank: list[str] = []
    for number, raw in enumerate(read_lines(path, "labelled file"), start=1):
        if not raw.strip():
            blank.append(f"line {number}: is blank")
            continue
        yield from blank
        blank.clear()
        try:
            yield _parsed(raw, number)
        except ValueError as error:
            yield f"line {number}: {error}"


def span_warnings(lines: Iterable[LabelledLine]) -> list[str]:
    """Warnings about spans that share characters, and about spans that cover no whole words."""
    shared = spans = cut = 0
    for line in lines:
        end = 0
        for span in sorted(line.spans, key=lambda span: span.start):
            shared += span.start < end
            end = max(end, span.end)
            spans += 1
            cut += _cuts(line.text, span.start, span.end)
    found = [f"{shared:,} spans overlap another one, and each counts for itself"] if shared else []
    if cut:
        counted = f"{cut:,} of {spans:,} spans begin or end at a blank or inside a word"
        found.append(f"{counted}: offsets must count Unicode code points")
    return found


def _cuts(text: str, start: int, end: int) -> bool:
    covered = text[start:end]
    inside = any(place and _INSIDE_WORD.match(text, place - 1) for place in (start, end))
    return inside or covered != covered.strip() or not covered


def write_labelled(path: str | Path, lines: Iterable[LabelledLine], *, private: bool = False) -> None:
    """Write labelled lines to a file. ``number`` is not written: it is the line's position."""
    with line_writer(path, private=private) as stream:
        for line in lines:
            record: dict[str, Any] = {"text": line.text, "spans": list(map(asdict, line.spans))}
            record |= {name: value for name in ("template", "document") if (value := getattr(line, name)) is not None}
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


class _Span(BaseModel, strict=True):
    start: int = Field(ge=0)
    end: int
    label: str = Field(pattern=r"\S")
    text: Any = None


class _Line(BaseModel, strict=True):
    text: str
    spans: list[_Span]
    template: Any = None
    document: str | int | None = None


def _parsed(raw: str, number: int) -> LabelledLine:
    """The line; ``ValueError`` with the reason if it is malformed. No reason quotes text."""
    try:
        found = read_json_line(raw)
        if not isinstance(found, dict):
            raise ValueError("is not a JSON object")
        record = _Line.model_validate(found)
    except NoJson as error:
        raise ValueError(str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = [str(part + 1) if isinstance(part, int) else part.removesuffix("s") for part in first["loc"]]
        raise ValueError(f"{' '.join(place)}: {first['msg']}") from None
    if any("\ud800" <= character <= "\udfff" for character in record.text):
        raise ValueError("'text' holds half of a surrogate pair")
    for position, span in enumerate(record.spans, start=1):
        if reason := _misplaced(span, record.text):
            raise ValueError(f"span {position} {reason}")
    spans = tuple(LabelledSpan(span.start, span.end, span.label) for span in record.spans)
    template = record.template if isinstance(record.template, str) else None
    return LabelledLine(record.text, spans, number, template, None if record.document is None else str(record.document))


def _misplaced(span: _Span, text: str) -> str:
    """The error in the offsets of a span of a text; empty if there is none."""
    if span.start >= span.end:
        return f"is empty: it starts at {span.start} and ends at {span.end}"
    if span.end > len(text):
        return f"ends at {span.end}, after the end of the text ({len(text)} characters)"
    if isinstance(span.text, str) and span.text != text[span.start : span.end]:
        return "has another 'text' than is at its offsets, which must count Unicode code points"
    return ""
