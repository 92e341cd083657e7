"""What a technique would mask, word by word and with reasons: what the terminal and the page of ``preview`` show.

Of long lines the first ``LONGEST_SHOWN`` characters are shown, and the rest is counted; the technique sees them whole.
Control characters and marks that turn the direction of text are shown by their code points, so that a text can neither
steer the terminal nor show its words in another order than they have.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tasks.masking.settings import Markers
from tasks.masking.technique import (
    Finding,
    KeptWord,
    MaskingTally,
    Technique,
    marker_of,
    merge_markers,
    write_markers,
)

LONGEST_SHOWN = 4000
"""Characters of a line."""
_TURNS_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
_OWN_NUMBERS = re.compile(r"\brank [\d,]+| \(\d\.\d\d\)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a line: a word with what is said of it, or what stands between words."""

    text: str
    """As it can be shown."""
    word: Finding | KeptWord | None
    """``None`` between words."""
    marker: str = ""
    """What a masked word becomes."""


@dataclass(frozen=True)
class PreviewedLine:
    """One line."""

    number: int
    """From 1."""
    pieces: list[Piece]
    masked: str
    """The line as ``palimpsest mask`` would write it."""
    characters_left_out: int
    words_left_out: int
    """Masked words among what is left out."""


@dataclass
class PreviewCounts(MaskingTally):
    """What was counted over all lines, whole as they are."""

    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Masked words by class, source and reason, without the ranks and scores of single words."""


def preview_lines(
    technique: Technique, lines: Iterable[str], markers: Markers, counts: PreviewCounts
) -> Iterator[PreviewedLine]:
    """What becomes of each line; reads lines as a stream and adds to ``counts``."""
    for number, (line, words) in enumerate(technique.explain(lines), start=1):
        findings = [word for word in words if isinstance(word, Finding)]
        counts.lines += 1
        counts.empty_lines += not line or line.isspace()
        counts.masked_lines += bool(findings)
        counts.words += len(words)
        counts.masked_words += len(findings)
        counts.labels.update(finding.label for finding in findings)
        counts.sources.update(finding.source for finding in findings)
        counts.reasons.update((word.label, word.source, kind_of_reason(word.reason)) for word in findings)
        shown = [word for word in words if word.end <= LONGEST_SHOWN]
        text = line[:LONGEST_SHOWN] if len(shown) == len(words) else line[: words[len(shown)].start]
        shown_findings = [word for word in shown if isinstance(word, Finding)]
        masked = write_markers(text, shown_findings, markers.style)
        yield PreviewedLine(
            number,
            list(_pieces(text, shown, markers)),
            visible(merge_markers(masked) if markers.merge else masked),
            len(line) - len(text),
            len(findings) - len(shown_findings),
        )


def _pieces(text: str, words: list[Finding | KeptWord], markers: Markers) -> Iterator[Piece]:
    position = 0
    for word in words:
        if word.start > position:
            yield Piece(visible(text[position : word.start]), None)
        marker = marker_of(word, markers.style) if isinstance(word, Finding) else ""
        yield Piece(visible(text[word.start : word.end]), word, marker)
        position = word.end
    if position < len(text):
        yield Piece(visible(text[position:]), None)


def visible(text: str) -> str:
    """Text with control characters and direction marks as their code points: ``<U+001B>``; tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"<U+{ord(character):04X}>" if _is_hidden(character) else character for character in text)


def _is_hidden(character: str) -> bool:
    if character == "\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _TURNS_DIRECTION


def kind_of_reason(reason: str) -> str:
    """A reason without what is one word's alone: its rank in a vocabulary and its score."""
    return _OWN_NUMBERS.sub(lambda match: "rank …" if "rank" in match.group() else "", reason)


def why(word: Finding | KeptWord) -> str:
    """The reason of a word, with the detector's score where there is one."""
    if isinstance(word, Finding) and word.score is not None and not _OWN_NUMBERS.search(word.reason):
        return f"{word.reason} ({word.score:.2f})"
    return word.reason


def counted_reasons(counts: PreviewCounts) -> list[tuple[str, str, str, int]]:
    """Class, source, reason and number of masked words, the most frequent first."""
    ordered = sorted(counts.reasons.items(), key=lambda item: (-item[1], item[0]))
    return [(label, source, reason, number) for (label, source, reason), number in ordered]
