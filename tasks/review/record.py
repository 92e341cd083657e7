"""The record of a review: one JSON line for the plan, then one for each line read, with reviewer and time."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer, make_folder
from tasks.review.plan import Plan

MARK_CLASSES = tuple(name for name in CLASSES if name != MASK)
"""Classes that a reviewer can give a word."""
SHIPPED = Path(__file__).parents[1] / "ready_made" / "reviews"
"""Reviews of public corpora that come with the package."""
REVIEWS = Path("data/private/review")
"""One file for each corpus, ``CORPUS.jsonl``. Offsets and classes only, but as private as the text."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One word that a reviewer marks as an identifier or as a part of one.

    Neighbouring words of one class, with only white space between them, are one identifier (a mention).
    """

    start: int
    """First character of the word in its line (Python string offset)."""
    end: int
    """Offset past its last character."""
    label: str
    """Class, one of ``tasks.corpora.masked_text.CLASSES`` except ``MASK``."""
    direct: bool
    """Whether it identifies a person on its own; a quasi-identifier does so together with others."""


@dataclass(frozen=True, slots=True)
class ReviewedLine:
    """One line as one reviewer has read it. For equal line and reviewer the last record counts."""

    line: int
    """Line number from 0."""
    reviewer: str
    when: str
    """Time, ISO 8601, UTC."""
    seconds: float
    """Seconds that the line was on the screen."""
    digest: str
    """SHA-256 of the line's text, first 16 hex digits, to detect an edited line."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """All records of one corpus."""

    plan: Plan
    lines: tuple[ReviewedLine, ...]


def text_digest(lines: Iterable[str]) -> str:
    """The SHA-256 of a text whose lines end in ``\\n``, as UTF-8: 64 hex digits."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def line_digest(line: str) -> str:
    """The first 16 hex digits of the SHA-256 of a line."""
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def now() -> str:
    """The time in UTC, to the second, in the format of records."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def create(path: Path, plan: Plan) -> Review:
    """Write a review without reviewed lines (mode 0600, folder 0700). Raises ``CorpusError`` if the file exists."""
    make_folder(path.parent, private=True)
    with _locked(path):
        if path.exists():
            raise CorpusError(f"{str(path)!r} exists already. It holds a review. Move it away to begin a new one.")
        with atomic_writer(path, private=True) as stream:
            stream.write(json.dumps({"plan": asdict(plan)}, separators=(",", ":")) + "\n")
    return Review(plan, ())


def append(path: Path, lines: Iterable[ReviewedLine]) -> None:
    """Add reviewed lines to a review. They are on the disk when this returns; other processes may append too."""
    records = "".join(json.dumps(asdict(line), ensure_ascii=False) + "\n" for line in lines)
    with _locked(path), open(path, "ab") as stream:
        stream.write(records.encode())
        stream.flush()
        os.fsync(stream.fileno())


def read(path: Path) -> Review:
    """The review in a file, in the order of saving; for equal line and reviewer the last record.

    Raises ``CorpusError`` that names the first damaged line of the file and its error.
    """
    plan: Plan | None = None
    found: dict[tuple[int, str], ReviewedLine] = {}
    for number, text in enumerate(read_lines(path, "review"), start=1):
        try:
            if plan is None:
                plan = _PLAN.validate_json(text)["plan"]
                continue
            line = _LINE.validate_json(text)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"])) or "the record"
            raise CorpusError(
                f"{str(path)!r}: line {number} is damaged: {place}: {problem['msg']}. Repair it, or remove it and read "
                "that line again."
            ) from None
        found.pop((line.line, line.reviewer), None)
        found[line.line, line.reviewer] = line
    if plan is None:
        raise CorpusError(f"{str(path)!r} is empty. A review begins with its plan. Remove the file and begin again.")
    return Review(plan, tuple(found.values()))


_PLAN, _LINE = TypeAdapter(dict[Literal["plan"], Plan]), TypeAdapter(ReviewedLine)


def check_text(review: Review, lines: Sequence[str], path: Path) -> None:
    """Raise ``CorpusError`` if a review is of another text than ``lines``, with the difference."""
    if review.plan.text == text_digest(lines):
        return
    digests = dict(enumerate(map(line_digest, lines)))
    edited = [each.line + 1 for each in review.lines if digests.get(each.line) != each.digest]
    what = "it is a review of another text"
    if len(edited) < len(review.lines):
        what = f"the text was edited since: of {len(review.lines)} reviewed lines {len(edited)} differ"
    raise CorpusError(
        f"{str(path)!r}: {what}. Its estimates would not hold for this text. Move the file away and review again, "
        "or restore the text."
    )


def review_of(corpus: str, text: Path) -> Review | None:
    """The review of a corpus: the user's, or else the shipped one of exactly this text.

    ``text``: the private training text. Raises ``CorpusError`` if the user's review is damaged or of another text.
    """
    own = path_of(corpus)
    if own.exists():
        review = read(own)
        check_text(review, list(read_lines(text)), own)
        return review
    shipped = SHIPPED / f"{corpus}.jsonl"
    if not shipped.exists():
        return None
    review = read(shipped)
    return review if review.plan.text == text_digest(read_lines(text)) else None


def path_of(corpus: str) -> Path:
    """The path of the user's review of a corpus."""
    return REVIEWS / f"{corpus}.jsonl"


def prefix_length(review: Review) -> int:
    """The number of reviewed queue entries before the first gap. Estimates use only these."""
    reviewed = {each.line for each in review.lines}
    return sum(1 for _ in takewhile(lambda entry: entry[0] in reviewed, review.plan.queue))


def waiting(review: Review) -> int:
    """The number of reviewed lines after the first gap of the queue: they count when the gap is closed."""
    return len({each.line for each in review.lines}) - prefix_length(review)


def marks_of(review: Review) -> dict[int, tuple[Mark, ...]]:
    """Marks by line number, for the longest reviewed prefix of the queue; empty for a line without any.

    For several reviewers the union: a word that one of them marks is marked, with the class of the earliest record, and
    directly identifying if one of them says so.
    """
    found = all_marks(review)
    return {line: found[line] for line, _ in review.plan.queue[: prefix_length(review)]}


def all_marks(review: Review) -> dict[int, tuple[Mark, ...]]:
    """The same for every reviewed line, also after a gap."""
    by_line: dict[int, list[ReviewedLine]] = {}
    for each in review.lines:
        by_line.setdefault(each.line, []).append(each)
    return {line: _union(records) for line, records in by_line.items()}


def _union(records: Sequence[ReviewedLine]) -> tuple[Mark, ...]:
    words: dict[tuple[int, int], Mark] = {}
    for mark in (mark for record in sorted(records, key=lambda record: record.when) for mark in record.marks):
        first = words.setdefault((mark.start, mark.end), mark)
        if mark.direct and not first.direct:
            words[mark.start, mark.end] = replace(first, direct=True)
    return tuple(sorted(words.values(), key=lambda mark: mark.start))


def _locked(path: Path) -> FileLock:
    return FileLock(path.with_suffix(".lock"), timeout=60, mode=0o600)
