"""One reviewer's reading of a corpus: the next line, its display, its saving, and the results so far.

The page and the terminal show the same reading. It does not depend on either.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.audit.clear_text import Words, masked_words
from tasks.corpora.division import DOCUMENTS
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS, MASK
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError, ParameterError
from tasks.review import record
from tasks.review.estimate import estimate, lines_needed
from tasks.review.plan import make_plan
from tasks.review.record import MARK_CLASSES, Mark, Review, ReviewedLine
from tasks.review.unmasked import reader_sidecar
from tasks.spelling import nearest

CORPORA, MASKED = Path("data/private/corpora"), Path("data/private/masked")
CONTEXT = 2
"""Lines that are shown before and after the line: of its document, if documents are known."""


@dataclass
class Reading:
    """The review of one corpus by one reviewer, for one technique."""

    corpus: str
    technique: str
    reviewer: str
    limit: float
    """Most unmasked direct identifiers per 1,000 lines of a release (``release.unmasked_direct``)."""
    stop: int | None = None
    """Total lines of this reviewer at which the reading ends; ``None``: it continues to the last line."""
    suggestions: bool = True
    """Whether the reference reader's words are shown as marked."""
    second: bool = False
    """Whether only lines are read that another reviewer has read."""
    seed: int = 1
    """Seed of a new plan."""
    again: list[int] = field(default_factory=list)
    """Lines to which this reviewer went back, to be read after the present one."""

    def __post_init__(self) -> None:
        if not self.text.exists():
            known = [folder.name for folder in CORPORA.glob("*") if (folder / "train.txt").exists()]
            raise CorpusError(
                f"corpus {self.corpus!r} has no training text{nearest(self.corpus, known)}: {str(self.text)!r} is "
                "missing. Run 'palimpsest run' first."
            )
        if not self.sidecar.exists():
            known = sorted(path.parent.name for path in (MASKED / self.corpus / "train").glob("*/sidecar.jsonl"))
            raise CorpusError(
                f"technique {self.technique!r} has not masked corpus {self.corpus!r}{nearest(self.technique, known)}. "
                f"Techniques that have: {', '.join(known) or 'none'}. Name a cell as CORPUS/TECHNIQUE/..."
            )
        if not self.reviewer.strip():
            raise ParameterError("the reviewer has no name. Name one with --reviewer NAME.")

    @property
    def text(self) -> Path:
        """The path of the raw training text."""
        return CORPORA / self.corpus / "train.txt"

    @property
    def sidecar(self) -> Path:
        """The path of the technique's sidecar for the text."""
        return MASKED / self.corpus / "train" / self.technique / "sidecar.jsonl"

    @cached_property
    def lines(self) -> list[str]:
        """All lines of the raw text."""
        return list(read_lines(self.text))

    @cached_property
    def masked(self) -> list[Words]:
        """The words of each line that the technique masks."""
        return list(masked_words(self.sidecar))

    @cached_property
    def found(self) -> list[dict[tuple[int, int], str]]:
        """The words of each line that the reference reader marks, with their classes."""
        return [
            {(span.start, span.end): span.label if span.label != MASK else "MISCELLANEOUS" for span in spans}
            for spans in read_sidecar(reader_sidecar(self.corpus))
        ]

    @cached_property
    def documents(self) -> Sequence[str] | None:
        """The document of each line; ``None`` if every line is one."""
        path = self.text.with_name(DOCUMENTS)
        return list(read_documents(path)) if path.exists() else None

    @cached_property
    def review(self) -> Review:
        """The present review; with a new plan if there is none. Saving a line replaces it."""
        found = record.review_of(self.corpus, self.text)
        if found is not None:
            return found
        masks = {
            sidecar.parent.name: list(masked_words(sidecar))
            for sidecar in sorted((MASKED / self.corpus / "train").glob("*/sidecar.jsonl"))
        }
        return Review(make_plan(self.lines, masks, self.found, self.technique, self.seed), ())

    def keep(self, lines: Sequence[ReviewedLine]) -> None:
        """Add reviewed lines to the user's record, which begins with the plan, and the shipped lines of the review."""
        path = record.path_of(self.corpus)
        if not path.exists():
            record.create(path, self.review.plan)
            record.append(path, self.review.lines)
        record.append(path, lines)
        # Another process may have added lines too.
        self.review = record.read(path)
        self.__dict__.pop("read_by", None)

    @cached_property
    def read_by(self) -> dict[int, dict[str, ReviewedLine]]:
        """The reviewers of each line, with their records."""
        found: dict[int, dict[str, ReviewedLine]] = {}
        for each in self.review.lines:
            found.setdefault(each.line, {})[each.reviewer] = each
        return found

    @property
    def own(self) -> list[ReviewedLine]:
        """The lines of this reviewer, in the order of the last saving."""
        return [each for each in self.review.lines if each.reviewer == self.reviewer]

    def next_line(self) -> int | None:
        """The next line to read; ``None`` if the reading has ended."""
        if self.again:
            return self.again[-1]
        if self.stop is not None and len(self.own) >= self.stop:
            return None
        return next(iter(self.to_read()), None)

    def to_read(self) -> list[int]:
        """Lines that this reviewer can still read, in the order of the queue."""
        queue = [line for line, _ in self.review.plan.queue]
        if self.second:
            return [line for line in queue if line in self.read_by and self.reviewer not in self.read_by[line]]
        return [line for line in queue if line not in self.read_by]

    def undo(self) -> None:
        """Go back to this reviewer's last saved line. Its record counts until it is saved again."""
        before = [each.line for each in self.own if each.line not in self.again]
        if before:
            self.again.append(before[-1])

    def save(self, line: int, marks: Sequence[Mark], seconds: float) -> None:
        """Record a line. Raises ``ParameterError`` if a mark is no word of it or has no class."""
        if line != self.next_line():
            raise ParameterError(f"line {line + 1} is not the one to be read now. Load the page again.")
        words = set(word_spans(self.lines[line]))
        for mark in marks:
            if (mark.start, mark.end) not in words:
                raise ParameterError(f"characters {mark.start} to {mark.end} of line {line + 1} are no word of it.")
            if mark.label not in MARK_CLASSES:
                raise ParameterError(f"class {mark.label!r} is not known{nearest(mark.label, MARK_CLASSES)}.")
        digest = record.line_digest(self.lines[line])
        saved = ReviewedLine(line, self.reviewer, record.now(), round(seconds, 1), digest, tuple(marks))
        self.keep([saved])
        if self.again:
            self.again.pop()

    def shown(self, line: int) -> dict[str, Any]:
        """A line for display: its words with their marks, the text between them, and the lines around it."""
        text, before = self.lines[line], self.read_by.get(line, {}).get(self.reviewer)
        marks = {(mark.start, mark.end): mark for mark in (before.marks if before else self.suggested(line))}
        words, position = [], 0
        for start, end in word_spans(text):
            mark = marks.get((start, end))
            words.append(
                {
                    "start": start,
                    "end": end,
                    "gap": text[position:start],
                    "text": text[start:end],
                    "masked": (start, end) in self.masked[line],
                    "suggestion": self.found[line].get((start, end)) if self.suggestions else None,
                    "mark": {"label": mark.label, "direct": mark.direct} if mark else None,
                }
            )
            position = end
        around = [number for number in range(line - CONTEXT, line + CONTEXT + 1) if self._near(line, number)]
        return {
            "line": line,
            "words": words,
            "rest": text[position:],
            "before": [self.lines[number] for number in around if number < line],
            "after": [self.lines[number] for number in around if number > line],
            "saved": before is not None,
        }

    def suggested(self, line: int) -> list[Mark]:
        """The marks of the reference reader; empty if suggestions are off."""
        found = self.found[line] if self.suggestions else {}
        words = [span for span in word_spans(self.lines[line]) if span in found]
        return [Mark(*span, found[span], found[span] in DIRECT_IDENTIFIERS) for span in words]

    def _near(self, line: int, other: int) -> bool:
        if not 0 <= other < len(self.lines):
            return False
        return self.documents is None or self.documents[other] == self.documents[line]

    def bound(self) -> dict[str, Any]:
        """The results for the technique so far, and the number of further lines that reach the limit."""
        marks = record.marks_of(self.review)
        own = self.own
        said: dict[str, Any] = {
            "lines": len(self.read_by),
            "counted": len(marks),
            "own": len(own),
            "seconds": sum(each.seconds for each in own),
            "stop": self.stop,
            "limit": self.limit,
        }
        masked = {line: self.masked[line] for line in marks}
        if marks:
            found = estimate(self.review.plan, marks, masked)
            said |= {"direct": asdict(found.direct), "quasi": asdict(found.quasi)}
        said["needed"] = lines_needed(self.review.plan, len(marks), self.limit, marks=marks, masked=masked)
        return said
