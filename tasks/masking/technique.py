"""Interface of masking techniques: a technique finds words of a line; the writing of markers is the same for all.

Neighbouring markers can be merged into one, as the paper does before BERT and RoBERTa fill (3.2). Markers are merged if
they are the same and only white space is between them. Every masked word has its own record in the sidecar; the records
of one marker share its index.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from tasks.corpora.masked_text import MARKER_PATTERN, MASK, Marker, escape
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import word_spans
from tasks.errors import ParameterError

if TYPE_CHECKING:
    from tasks.languages.masked_words import MaskedWords

MarkerStyle = Literal["mask", "class"]
"""``mask``: every marker is ``[MASK]``, as in the paper; ``class``: the marker names the class, ``[PERSON]``."""

_REPEATED = re.compile(rf"({MARKER_PATTERN.pattern})(?:\s*\1)+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One word to mask."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    """Class of the word, one of ``masked_text.CLASSES``."""
    source: str
    """Technique, detector or rule that found the word."""
    score: float | None = None
    """Confidence of the detector, from 0 to 1; ``None`` if it gives none."""
    reason: str = ""
    """Readable reason: the rule, or the entity type and recogniser. Never contains the word itself."""
    language: str | None = None
    """Language that the marker names; ``None``: no language."""


@dataclass(frozen=True, slots=True)
class KeptWord:
    """One word that is not masked."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    reason: str
    """Readable reason. Never contains the word itself."""


Explained = list[Finding | KeptWord]
"""All words of a line in order, masked or not."""


@dataclass
class MaskingTally:
    """Counts of masking."""

    lines: int = 0
    empty_lines: int = 0
    masked_lines: int = 0
    """Lines with at least one marker."""
    words: int = 0
    masked_words: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """Masked words by class."""

    def count(self, line: str, words: int, findings: Sequence[Finding]) -> None:
        """Count a line with ``words`` words, of which ``findings`` are masked."""
        self.lines += 1
        self.empty_lines += not line or line.isspace()
        self.masked_lines += bool(findings)
        self.words += words
        self.masked_words += len(findings)
        self.labels.update(finding.label for finding in findings)

    def add(self, other: "MaskingTally") -> None:
        """Add the counts of other lines."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def masked_fraction(self) -> float | None:
        """Masked words per word; ``None`` without words."""
        return self.masked_words / self.words if self.words else None


class Technique(ABC):
    """One way to decide which words are private (paper 3.1)."""

    name: str
    """Kind of the technique, or kind and model of its tagger: the source of its findings."""
    languages: tuple[str, ...] = ()
    """Languages (ISO 639-1) of text that the technique is made for; empty if unknown, as for a user's list."""
    mixes: tuple[str, ...] = ()
    """Languages that the technique distinguishes in a text; empty if it does not."""
    by_language: "MaskedWords | None" = None
    """Masked words of each language, if the technique counts them itself."""
    is_by_line: bool = False
    """Whether the findings in a line depend on that line only (and, in the last digits of a score, on the lines of its
    batch), so that a text may be split. Otherwise it reads the whole text, for instance to learn from it."""
    is_costly: bool = False
    """Whether finding takes much longer than reading and writing a line, so that it pays to distribute lines."""
    allowed_words: frozenset[str] | None = None
    """Folded words that are never masked, for techniques that go by a list; ``None`` for the others."""
    allowed_by_language: Mapping[str, frozenset[str]] = {}
    """Folded words of each language that are never masked."""
    marker_language_bits: float | None = None
    """Bits for each masked word by which the markers reveal its language; ``None`` if they name none."""

    @abstractmethod
    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with the words to mask, in order and without overlap; reads lines as a stream.

        Starts and ends are those of ``tasks.corpora.words``. A technique with a list gives no reason here.
        """

    def learn(self, lines: Iterable[str]) -> None:
        """Learn from a text, so that findings in other texts depend on their line only.

        Raises ``ParameterError`` if the technique is not ``is_by_line`` and learns in no other way.
        """
        if not self.is_by_line:
            raise ParameterError(f"technique {self.name!r} reads a text as a whole, so it cannot mask others in parts")

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, Explained]]:
        """Each line with all of its words in order, masked or not, and the reason for each."""
        for line, findings in self.findings(lines):
            found = {(finding.start, finding.end): finding for finding in findings}
            yield line, [found.get(word) or KeptWord(*word, "not found") for word in self.spans(line)]

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Start and end of each word of a line, by this technique's division into words."""
        return word_spans(line)

    def announcements(self) -> list[str]:
        """Lines for the user before the work begins: facts about the technique that settings do not show."""
        return []

    def mask(
        self, lines: Iterable[str], style: MarkerStyle, tally: MaskingTally, *, with_spans: bool, merge: bool = False
    ) -> Iterator[tuple[str, list[MaskedSpan]]]:
        """Each line masked; the spans are empty unless ``with_spans``. Counts of words are added to ``tally``.

        ``merge`` makes one marker of equal neighbours.
        """
        for line, findings in self.findings(lines):
            tally.count(line, len(self.spans(line)), findings)
            masked = write_markers(line, findings, style)
            spans = masked_spans(line, findings, style, merge=merge) if with_spans else []
            yield merge_markers(masked) if merge else masked, spans


def write_markers(line: str, findings: list[Finding], style: MarkerStyle) -> str:
    """A raw line as a masked line: markers for the findings, everything else escaped and otherwise unchanged."""
    if not findings:
        return escape(line)
    pieces = []
    position = 0
    for finding in findings:
        pieces.append(escape(line[position : finding.start]))
        pieces.append(marker_of(finding, style))
        position = finding.end
    pieces.append(escape(line[position:]))
    return "".join(pieces)


def marker_of(finding: Finding, style: MarkerStyle) -> str:
    """The marker of a finding."""
    return _written(finding.label if style == "class" else MASK, finding.language)


@cache
def _written(label: str, language: str | None) -> str:
    return str(Marker(label, language))


def merge_markers(masked_line: str) -> str:
    """A masked line with one marker for equal ones that only white space separates."""
    return _REPEATED.sub(r"\1", masked_line) if "[" in masked_line else masked_line


def masked_spans(
    line: str, findings: list[Finding], style: MarkerStyle = "mask", *, merge: bool = False
) -> list[MaskedSpan]:
    """The sidecar's records of the findings of one line; ``merge`` as in ``Technique.mask``."""
    spans: list[MaskedSpan] = []
    marker = -1
    before: Finding | None = None
    for finding in findings:
        joined = (
            merge
            and before is not None
            and marker_of(before, style) == marker_of(finding, style)
            and not line[before.end : finding.start].strip()
        )
        marker += not joined
        original = line[finding.start : finding.end]
        spans.append(MaskedSpan(finding.start, finding.end, finding.label, finding.source, original, marker))
        before = finding
    return spans
