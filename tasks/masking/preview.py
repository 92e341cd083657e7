"""What a technique would mask, word by word and with reasons: what the terminal and the page of ``preview`` show.

Of long lines the first ``LONGEST_SHOWN`` characters are shown, and the rest is counted; the technique sees them whole.
Control characters and marks that turn the direction of text are shown by their code points, so that a text can neither
steer the terminal nor show its words in another order than they have.

The preview as a page: one HTML file with everything in it, readable offline, in light and dark.

The reason of a word shows when the mouse is over it and when it has the keyboard's focus; Escape puts it away.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import tee
from pathlib import Path

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.plain_text import DIRECTION_MARKS
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
from tasks.page_templates import page_environment

LONGEST_SHOWN = 4000
"""Characters of a line."""
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
    technique: Technique, lines: Iterable[str], markers: Markers, counts: PreviewCounts, languages: Sequence[str] = ()
) -> Iterator[PreviewedLine]:
    """What becomes of each line; reads lines as a stream and adds to ``counts``.

    ``languages`` that the text mixes: the reason of each word begins with its own.
    """
    # Only then: what nobody reads would be kept.
    lines, told = tee(lines) if languages else (lines, ())
    explained = technique.explain(lines)
    for number, (line, words) in enumerate(_told(explained, languages, told) if languages else explained, start=1):
        findings = [word for word in words if isinstance(word, Finding)]
        counts.count(line, len(words), findings)
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


def _told(
    explained: Iterable[tuple[str, list[Finding | KeptWord]]], languages: Sequence[str], lines: Iterable[str]
) -> Iterator[tuple[str, list[Finding | KeptWord]]]:
    from tasks.languages.word_languages import tagged_lines

    for (line, words), (_, tagged) in zip(explained, tagged_lines(languages, lines)[1], strict=True):
        of = tagged.by_start(line)
        yield line, [replace(word, reason=f"{of.get(word.start) or 'no language'}: {word.reason}") for word in words]


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
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in DIRECTION_MARKS


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


_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Previewed:
    """What one technique makes of a text."""

    title: str
    lines: Sequence[PreviewedLine]
    counts: PreviewCounts
    notes: Sequence[str] = ()
    """What the technique goes by, and warnings."""
    fills: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """By the number of a line, what each way of filling makes of it."""

    @property
    def classes(self) -> list[tuple[str, int]]:
        """The classes of masked words, with their numbers."""
        return [(label, self.counts.labels[label]) for label in CLASSES if self.counts.labels[label]]

    @property
    def reasons(self) -> list[tuple[str, str, str, int]]:
        """Why words are masked, the most frequent reason first."""
        return counted_reasons(self.counts)


def preview_page(title: str, techniques: Sequence[Previewed], notes: Sequence[str] = (), *, all_words: bool) -> str:
    """The page; ``notes`` are about the text itself, ``all_words`` gives kept words their reasons too."""
    from markupsafe import Markup

    environment = page_environment(_FOLDER)
    environment.tests["masked"] = lambda word: isinstance(word, Finding)
    environment.filters["why"] = why
    return environment.get_template("preview_page.html").render(
        style=Markup((_FOLDER / "preview_page.css").read_text(encoding="utf-8")),
        title=title,
        techniques=techniques,
        notes=notes,
        all_words=all_words,
        colours={label: f"c{index}" for index, label in enumerate(CLASSES)},
    )
