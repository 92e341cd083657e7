"""Lines with labelled spans in the formats of annotation tools: Label Studio, doccano, Prodigy and spaCy, and our own.

Each reader gives the same records; spans that a person has not accepted are counted under a reason and left out. A flag
that differs from the class's default is a part of the label, ``LOCATION/direct``, since no tool has a field for it; our
own gold format has ``"direct"`` in the span.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.review.record import Mark


@dataclass(frozen=True, slots=True)
class Span:
    """One labelled span of a tool."""

    start: int
    """First position in the tool's unit: characters, or UTF-16 code units."""
    end: int
    label: str
    """Label, without the flag."""
    direct: bool | None = None
    """Flag; ``None``: the class's default."""
    covered: str | None = None
    """Text of the span according to the tool; ``None`` without such a field."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """One text annotated by one person."""

    number: int
    """Record of the file, from 1."""
    text: str
    spans: tuple[Span, ...]
    line: int | None = None
    """Line number from 0, if our export had written it."""
    by: str | None = None
    """Annotator, if the tool names one."""


def flagged(label: str, direct: bool) -> str:
    """The label of a span for a tool: the class, with the flag if it differs from the class's default."""
    return label if direct == (label in DIRECT_IDENTIFIERS) else f"{label}/{'direct' if direct else 'quasi'}"


def stretches(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Neighbouring marked words of one class and flag, with only white space between them, as one span each."""
    found: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        last = found[-1] if found else None
        if last and (last.label, last.direct) == (mark.label, mark.direct) and not text[last.end : mark.start].strip():
            found[-1] = Mark(last.start, mark.end, mark.label, mark.direct)
        else:
            found.append(mark)
    return found


def written(
    form: str, lines: Iterable[tuple[int, str, Sequence[Mark]]], *, reviewed: bool, documents: Sequence[str] | None
) -> Iterator[str]:
    """The lines of a file in a format.

    ``lines``: number from 0, text, marks. ``reviewed``: whether a person set the marks, and not the suggestions.
    ``documents``: the document of every line of the corpus, for the gold format.
    """
    records = [FORMATS[form][0](number, text, stretches(text, marks), reviewed) for number, text, marks in lines]
    if form == "gold" and documents is not None:
        records = [record | {"document": documents[record["line"]]} for record in records]
    if form == "label-studio":
        yield json.dumps(records, ensure_ascii=False, indent=1)
    else:
        yield from (json.dumps(record, ensure_ascii=False) for record in records)


def read_annotated(form: str, path: Path) -> tuple[list[Annotated], Counter[str]]:
    """All annotated texts of a file, and the number of omitted records, by reason.

    Raises ``CorpusError`` that names the first malformed record.
    """
    left_out: Counter[str] = Counter()
    found: list[Annotated] = []
    for number, value in enumerate(_values(form, path), start=1):
        try:
            records = list(FORMATS[form][1](number, value, left_out))
            if any("\ud800" <= character <= "\udfff" for record in records for character in record.text):
                raise ValueError("its text holds half of a surrogate pair")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            missing = f"it has no {error}" if isinstance(error, KeyError) else "it has another form"
            raise CorpusError(
                f"{str(path)!r}: record {number} is not of the format {form!r}: {missing}. Export it again as "
                f"{form}, or name its format."
            ) from None
        found += records
    if not found and not left_out:
        raise CorpusError(f"{str(path)!r} holds no record. Nothing was taken. Export the annotated lines again.")
    return found, left_out


def _values(form: str, path: Path) -> Iterator[Any]:
    lines = list(read_lines(path, "annotated file"))
    try:
        if form == "label-studio":
            yield from read_json_line("\n".join(lines))
        else:
            yield from (read_json_line(line) for line in lines if line.strip())
    except (NoJson, TypeError) as error:
        raise CorpusError(f"{str(path)!r} {error if isinstance(error, NoJson) else 'is no list of tasks'}.") from None


def _to_label_studio(line: int, text: str, marks: Sequence[Mark], read: bool) -> dict[str, Any]:
    result = [
        {
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {
                "start": _utf16(text[: mark.start]),
                "end": _utf16(text[: mark.end]),
                "text": text[mark.start : mark.end],
                "labels": [flagged(mark.label, mark.direct)],
            },
        }
        for mark in marks
    ]
    return {"data": {"text": text, "line": line}, "annotations" if read else "predictions": [{"result": result}]}


def _from_label_studio(number: int, task: dict[str, Any], left_out: Counter[str]) -> Iterator[Annotated]:
    data = task.get("data", task)
    text, line = data["text"], _line(data)
    # The short export, JSON-MIN, has the spans of one annotation next to the text.
    annotations = task.get("annotations", []) if "data" in task else [_short(task)]
    left_out["tasks without an annotation"] += not annotations
    for annotation in annotations:
        if annotation.get("was_cancelled"):
            left_out["skipped annotations"] += 1
            continue
        values = [each["value"] for each in annotation["result"] if "labels" in each.get("value", {})]
        spans = [Span(v["start"], v["end"], label, None, v.get("text")) for v in values for label in v["labels"]]
        by = annotation.get("completed_by")
        yield _annotated(number, text, spans, line, by.get("email") or by["id"] if isinstance(by, dict) else by)


def _short(task: dict[str, Any]) -> dict[str, Any]:
    return {"result": [{"value": value} for value in task.get("label", [])], "completed_by": task.get("annotator")}


def _to_doccano(line: int, text: str, marks: Sequence[Mark], read: bool) -> dict[str, Any]:
    return {"text": text, "label": [[m.start, m.end, flagged(m.label, m.direct)] for m in marks], "line": line}


def _from_doccano(number: int, record: dict[str, Any], left_out: Counter[str]) -> Iterator[Annotated]:
    if "entities" in record:
        spans = [Span(e["start_offset"], e["end_offset"], e["label"]) for e in record["entities"]]
    else:
        spans = [Span(*each) for each in (record["label"] if "label" in record else record["labels"])]
    yield _annotated(number, record["text"], spans, _line(record), record.get("username"))


def _to_prodigy(line: int, text: str, marks: Sequence[Mark], read: bool) -> dict[str, Any]:
    spans = [{"start": m.start, "end": m.end, "label": flagged(m.label, m.direct)} for m in marks]
    return {"text": text, "spans": spans, "meta": {"line": line}, **({"answer": "accept"} if read else {})}


def _from_prodigy(number: int, record: Any, left_out: Counter[str]) -> Iterator[Annotated]:  # noqa: ANN401 - of JSON
    if isinstance(record, list):
        # spaCy's training examples: [text, {"entities": [[start, end, label]]}].
        record = {"text": record[0], **record[1]}
    line = _line(record.get("meta", {}))
    # Our exports have no answer yet; files of spaCy have none at all.
    if (answer := record.get("answer", "accept" if line is None else None)) != "accept":
        left_out[f"records with the answer {answer!r}" if answer else "records without an answer"] += 1
        return
    if "entities" in record:
        spans = [Span(*each[:3]) for each in record["entities"]]
    else:
        spans = [Span(s["start"], s["end"], s["label"], None, s.get("text")) for s in record.get("spans", [])]
    yield _annotated(number, record["text"], spans, line, record.get("_annotator_id"))


def _to_gold(line: int, text: str, marks: Sequence[Mark], read: bool) -> dict[str, Any]:
    spans = [{"start": m.start, "end": m.end, "label": m.label, "direct": m.direct} for m in marks]
    return {"text": text, "spans": spans, "line": line}


def _from_gold(number: int, record: dict[str, Any], left_out: Counter[str]) -> Iterator[Annotated]:
    spans = [Span(s["start"], s["end"], s["label"], s.get("direct")) for s in record["spans"]]
    yield _annotated(number, record["text"], spans, _line(record), None)


def _annotated(number: int, text: str, spans: Sequence[Span], line: int | None, by: object) -> Annotated:
    if not isinstance(text, str):
        raise TypeError
    for span in spans:
        if type(span.start) is not int or type(span.end) is not int or not isinstance(span.label, str):
            raise TypeError
    return Annotated(number, text, tuple(map(_without_flag, spans)), line, None if by is None else str(by))


def _without_flag(span: Span) -> Span:
    label, _, flag = span.label.rpartition("/")
    return replace(span, label=label, direct=flag == "direct") if label and flag in ("direct", "quasi") else span


def _line(record: Mapping[str, Any]) -> int | None:
    line = record.get("line")
    return line if type(line) is int else None


def _utf16(text: str) -> int:
    """Length in UTF-16 code units, which the browser counts."""
    return len(text) + sum(character > "\uffff" for character in text)


_Writer = Callable[[int, str, Sequence[Mark], bool], dict[str, Any]]
_Reader = Callable[[int, Any, Counter[str]], Iterator[Annotated]]
FORMATS: dict[str, tuple[_Writer, _Reader]] = {
    "label-studio": (_to_label_studio, _from_label_studio),
    "doccano": (_to_doccano, _from_doccano),
    "prodigy": (_to_prodigy, _from_prodigy),
    "gold": (_to_gold, _from_gold),
}
"""Writer and reader of each format."""
