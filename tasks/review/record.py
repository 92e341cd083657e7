"""The record of a review: one JSON line for the plan, then one for each line that was read, by whom and when."""

from dataclasses import dataclass
from pathlib import Path

from tasks.review.plan import Plan

REVIEWS = Path("data/private/review")
"""One file for each corpus, ``CORPUS.jsonl``. Offsets and classes only, but as private as the text."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One word that a reviewer marks as an identifier or as a part of one.

    Neighbouring words of one class, with nothing but white space between them, are one identifier (a mention).
    """

    start: int
    """First character of the word in its line (Python string offset)."""
    end: int
    """The character past its last."""
    label: str
    """One of ``tasks.corpora.masked_text.CLASSES`` but ``MASK``."""
    direct: bool
    """A direct identifier says by itself who is meant; a quasi-identifier says it together with others."""


@dataclass(frozen=True, slots=True)
class ReviewedLine:
    """One line as one reviewer has read it. Of equal line and reviewer the last record counts."""

    line: int
    """Line number from 0."""
    reviewer: str
    when: str
    """ISO 8601, UTC."""
    seconds: float
    """How long the line was on the screen."""
    digest: str
    """SHA-256 of the line's text, first 16 hex digits: an edited line is noticed."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that is recorded for one corpus."""

    plan: Plan
    lines: tuple[ReviewedLine, ...]
