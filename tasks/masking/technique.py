"""What a masking technique is: it finds words of a line; how they are written as markers is the same for all."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tasks.corpora.masked_text import MASK, Marker, escape
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import count_words

MarkerStyle = Literal["mask", "class"]
"""``mask``: every marker is ``[MASK]``, as in the paper; ``class``: the marker names the class, ``[PERSON]``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One word to be masked."""

    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""
    label: str
    """Its class, one of ``masked_text.CLASSES``."""
    source: str
    """Technique, detector or rule that found it."""
    score: float | None = None
    """How sure the detector is, from 0 to 1; ``None`` where it does not say."""
    reason: str = ""
    """Why, for a person to read: the rule, or the entity type and recogniser. Never holds the word itself."""


@dataclass
class MaskingTally:
    """What masking counted."""

    lines: int = 0
    empty_lines: int = 0
    masked_lines: int = 0
    """Lines with at least one marker."""
    words: int = 0
    masked_words: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    """Masked words by class."""
    sources: Counter[str] = field(default_factory=Counter)
    """Masked words by technique, detector or rule."""

    @property
    def masked_fraction(self) -> float | None:
        """Masked words per word; ``None`` without words."""
        return self.masked_words / self.words if self.words else None


class Technique(ABC):
    """One way to decide which words are private (paper 3.1)."""

    kept_words: frozenset[str] | None = None
    """Folded words that are never masked, for techniques that go by a list; ``None`` for the others."""

    @abstractmethod
    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with the words to be masked, in order and without overlap; reads lines as a stream."""

    def in_force(self) -> dict[str, Any]:
        """Numbers and names for the report: what the technique worked with, and what happened meanwhile."""
        return {}

    def mask(
        self, lines: Iterable[str], style: MarkerStyle, tally: MaskingTally, *, with_spans: bool
    ) -> Iterator[tuple[str, list[MaskedSpan]]]:
        """Mask each line; the spans are empty unless ``with_spans``. Counts go into ``tally``."""
        for line, findings in self.findings(lines):
            tally.lines += 1
            tally.empty_lines += not line or line.isspace()
            tally.words += count_words(line)
            if findings:
                tally.masked_lines += 1
                tally.masked_words += len(findings)
                tally.labels.update(finding.label for finding in findings)
                tally.sources.update(finding.source for finding in findings)
            yield write_markers(line, findings, style), (masked_spans(line, findings) if with_spans else [])


def write_markers(line: str, findings: list[Finding], style: MarkerStyle) -> str:
    """A raw line as a masked line: markers for the findings, everything else escaped and otherwise untouched."""
    if not findings:
        return escape(line)
    pieces = []
    position = 0
    for finding in findings:
        pieces.append(escape(line[position : finding.start]))
        pieces.append(str(Marker(finding.label if style == "class" else MASK)))
        position = finding.end
    pieces.append(escape(line[position:]))
    return "".join(pieces)


def masked_spans(line: str, findings: list[Finding]) -> list[MaskedSpan]:
    """The sidecar's record of the findings of one line."""
    return [
        MaskedSpan(finding.start, finding.end, finding.label, finding.source, line[finding.start : finding.end], marker)
        for marker, finding in enumerate(findings)
    ]
