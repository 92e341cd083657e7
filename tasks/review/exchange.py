"""Export and import of reviewed lines for annotation tools. Records that are not imported are counted, by reason."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.text_lines import line_writer
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError, ParameterError
from tasks.masking_evaluation.label_classes import LabelMapping, label_mapping
from tasks.review import record
from tasks.review.formats import FORMATS, Annotated, read_annotated, written
from tasks.review.offsets import in_characters
from tasks.review.reading import Reading
from tasks.review.record import MARK_CLASSES, Mark, ReviewedLine
from tasks.spelling import nearest

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
EXPORTED = 100
"""Default number of lines of an export."""
MarkedLine = tuple[int, str, Sequence[Mark]]
"""Number from 0, text and marks of a line."""


def next_lines(reading: Reading, number: int) -> list[MarkedLine]:
    """The next lines to read, at most ``number``, with suggestions. The plan is recorded: its order remains."""
    reading.keep([])
    return [(line, reading.lines[line], reading.suggested(line)) for line in reading.to_read()[:number]]


def write_export(reading: Reading, form: str, output: Path, number: int | None, reviewed: bool) -> str:
    """Write lines for an annotation tool (mode 0600): the next ones, with suggestions, or ``reviewed`` ones.

    The gold format has reviewed lines only. Returns a sentence on the written lines.
    """
    _check_format(form)
    chosen: list[MarkedLine]
    if reviewed or form == "gold":
        marks = record.all_marks(reading.review)
        chosen = [(line, reading.lines[line], marks[line]) for line, _ in reading.review.plan.queue if line in marks]
        if not chosen:
            raise CorpusError(f"no line of {reading.corpus!r} is reviewed. Review lines first, then export them.")
        what = "reviewed lines"
    else:
        chosen = next_lines(reading, number or EXPORTED)
        what = "lines to review" + (", with suggestions" if reading.suggestions else "")
    with line_writer(output, private=True) as stream:
        for text in written(form, chosen, reviewed=what == "reviewed lines", documents=reading.documents):
            stream.write(f"{text}\n")
    return f"{output}: {len(chosen):,} {what} as {form}. It holds private text; mode 0600."


def take_import(reading: Reading, form: str, path: Path, labels: Mapping[str, str | None]) -> str:
    """Import annotated lines into the review; return sentences on imported and omitted lines.

    Raises ``CorpusError`` or ``ParameterError`` if nothing can be imported: no text is of the corpus, a label has no
    class, the offsets are of no known unit. Nothing is recorded then.
    """
    _check_format(form)
    records, left_out = read_annotated(form, path)
    mapping = label_mapping(labels, "--labels")
    _check_labels(records, mapping)
    offsets, unit = in_characters(records, str(path))
    several = len({each.by for each in records}) > 1
    by_text: defaultdict[str, list[int]] = defaultdict(list)
    for planned, _ in reading.review.plan.queue:
        by_text[reading.lines[planned].strip()].append(planned)
    taken: dict[tuple[int, str], ReviewedLine] = {}
    for annotated, places in zip(records, offsets, strict=True):
        reviewer = annotated.by if several and annotated.by else reading.reviewer
        labelled = [(*place, span) for place, span in zip(places, annotated.spans, strict=True) if place]
        was_taken = False
        for first, number, text in _lines_of(annotated):
            fitting = by_text[text.strip()]
            ordered = [number] * (number in fitting) + fitting
            line = next((line for line in ordered if (line, reviewer) not in taken), None)
            if line is None:
                left_out["repeated lines" if fitting else "lines that the corpus does not have"] += 1
                continue
            # Where the line's own text begins in the tool's text.
            shift = first + text.index(text.strip()) - reading.lines[line].index(text.strip())
            marks: list[Mark] = []
            for start, end in word_spans(reading.lines[line]):
                over = [span for begin, stop, span in labelled if begin < end + shift and start + shift < stop]
                classes = [(mapping.class_of(span.label), span.direct) for span in over]
                found = [(name, direct) for name, direct in classes if name is not None]
                if found:
                    (name, direct), *_ = found
                    marks.append(Mark(start, end, name, name in DIRECT_IDENTIFIERS if direct is None else direct))
                    left_out["further labels of a word that has one"] += len({name for name, _ in found}) - 1
            digest = record.line_digest(reading.lines[line])
            taken[line, reviewer] = ReviewedLine(line, reviewer, record.now(), 0.0, digest, tuple(marks))
            was_taken = True
        if was_taken:
            words = word_spans(annotated.text)
            for begin, stop, span in labelled:
                is_word = any(start < stop and begin < end for start, end in words)
                left_out["spans without a word"] += not is_word
                left_out["spans of labels that are not private"] += mapping.class_of(span.label) is None
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    if not taken:
        raise CorpusError(
            f"{str(path)!r}: no line was taken ({reasons}). Check that the file is of {reading.corpus!r}."
        )
    again = sum(reviewer in reading.read_by.get(line, {}) for line, reviewer in taken)
    reading.keep(list(taken.values()))
    words_marked = sum(len(each.marks) for each in taken.values())
    by = ", ".join(sorted({reviewer for _, reviewer in taken}))
    said = [f"{path}: {len(taken):,} lines taken, {words_marked:,} words marked, by {by}"]
    if again:
        said.append(f"{again:,} of them replace what the same reviewer had recorded")
    if unit:
        said.append(f"offsets were in {unit}, and are converted to characters")
    if reasons:
        said.append(f"left out: {reasons}")
    if beyond := record.waiting(reading.review):
        said.append(f"{beyond:,} lines count when the lines before them in the plan are read")
    return "\n".join(said)


def _lines_of(annotated: Annotated) -> Iterator[tuple[int, int | None, str]]:
    """Each line with a text: its first character in the tool's text, its number by our export, and itself."""
    first = 0
    for place, text in enumerate(_LINE.findall(annotated.text)):
        if text.strip():
            yield first, None if annotated.line is None else annotated.line + place, text
        first += len(text)


def _check_format(form: str) -> None:
    if form not in FORMATS:
        raise ParameterError(f"format {form!r} is not known{nearest(form, FORMATS)}. Formats: {', '.join(FORMATS)}.")


def _check_labels(records: list[Annotated], mapping: LabelMapping) -> None:
    """Raise ``ParameterError`` that names all labels without a class, with their counts."""
    labels = Counter(span.label for each in records for span in each.spans)
    unknown = [
        f"{label!r} ({count:,} spans){nearest(label.upper(), MARK_CLASSES)}"
        for label, count in sorted(labels.items())
        if mapping.class_of(label) is None and mapping.is_private(label)
    ]
    if unknown:
        raise ParameterError(
            f"labels without a class: {'; '.join(unknown)}. Nothing was taken. Map each with --labels FROM=TO, or with "
            f"--labels FROM= where it is not private; classes: {', '.join(MARK_CLASSES)}."
        )
