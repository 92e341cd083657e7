"""Preview of a technique, word by word with reasons, for the terminal and the page of ``preview``.

Control characters and direction marks are shown by their code points. So a text can neither control the terminal
nor show its words in another order.

The page is one HTML file, readable offline, in light and dark. It shows a word's reason on mouse-over and on keyboard
focus; Escape hides it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import tee
from pathlib import Path
from typing import NamedTuple

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.plain_text import DIRECTION_MARKS
from tasks.masking.settings import Markers
from tasks.masking.technique import (
    Explained,
    Finding,
    KeptWord,
    MaskingTally,
    Technique,
    marker_of,
    merge_markers,
    write_markers,
)
from tasks.page_templates import page_environment

_OWN_NUMBERS = re.compile(r"\brank [\d,]+| \(\d\.\d\d\)")
_FOLDER = Path(__file__).parent


class Piece(NamedTuple):
    """One piece of a line: a word with its finding or reason, or the text between two words."""

    text: str
    """Text of the piece, with control characters visible."""
    word: Finding | KeptWord | None = None
    marker: str = ""
    """Marker that replaces a masked word."""


class PreviewedLine(NamedTuple):
    """One line of the preview."""

    number: int
    pieces: list[Piece]
    masked: str
    """The line as ``palimpsest mask`` would write it."""


@dataclass
class PreviewCounts(MaskingTally):
    """Counts over all lines."""

    by_reason: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Masked words by class, source and reason, without the ranks and scores of single words."""

    @property
    def reasons(self) -> list[tuple[str, str, str, int]]:
        """Class, source, reason and number of masked words, the most frequent first."""
        ordered = sorted(self.by_reason.items(), key=lambda item: (-item[1], item[0]))
        return [(*reason, number) for reason, number in ordered]


@dataclass(frozen=True)
class Previewed:
    """Preview of a text by one technique."""

    title: str
    lines: Sequence[PreviewedLine]
    counts: PreviewCounts
    notes: Sequence[str] = ()
    """Description of the technique in force, and warnings."""
    fills: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """Fills of each line by its number: pairs of a fill's name and its text."""


def preview_lines(
    technique: Technique, lines: Iterable[str], markers: Markers, counts: PreviewCounts, languages: Sequence[str] = ()
) -> Iterator[PreviewedLine]:
    """The preview of each line; reads lines as a stream and adds to ``counts``.

    ``languages``: those of a mixed text; the reason of each word then begins with the word's language.
    """
    # Only for a mixed text: tee holds the lines until both readers have read them.
    lines, detected = tee(lines) if languages else (lines, ())
    explained = technique.explain(lines)
    if languages:
        explained = _with_languages(explained, languages, detected)
    for number, (line, words) in enumerate(explained, start=1):
        findings = [word for word in words if isinstance(word, Finding)]
        counts.count(line, len(words), findings)
        counts.by_reason.update((word.label, word.source, kind_of_reason(word.reason)) for word in findings)
        masked = write_markers(line, findings, markers.style)
        masked = visible(merge_markers(masked) if markers.merge else masked)
        yield PreviewedLine(number, list(_pieces(line, words, markers)), masked)


def _with_languages(
    explained: Iterable[tuple[str, Explained]], languages: Sequence[str], lines: Iterable[str]
) -> Iterator[tuple[str, Explained]]:
    from tasks.languages.word_languages import tagged_lines

    for (line, words), (_, tagged) in zip(explained, tagged_lines(languages, lines)[1], strict=True):
        of = tagged.by_start(line)
        yield line, [replace(word, reason=f"{of.get(word.start) or 'no language'}: {word.reason}") for word in words]


def _pieces(text: str, words: Explained, markers: Markers) -> Iterator[Piece]:
    position = 0
    for word in words:
        if word.start > position:
            yield Piece(visible(text[position : word.start]))
        marker = marker_of(word, markers.style) if isinstance(word, Finding) else ""
        yield Piece(visible(text[word.start : word.end]), word, marker)
        position = word.end
    if position < len(text):
        yield Piece(visible(text[position:]))


def visible(text: str) -> str:
    """Text with control characters and direction marks as their code points: ``<U+001B>``; tabs stay."""
    hidden = {
        ord(character): f"<U+{ord(character):04X}>"
        for character in set(text) - {"\t"}
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in DIRECTION_MARKS
    }
    return text.translate(hidden)


def kind_of_reason(reason: str) -> str:
    """A reason without the rank and the score of a single word."""
    return _OWN_NUMBERS.sub(lambda match: "rank …" if "rank" in match.group() else "", reason)


def why(word: Finding | KeptWord) -> str:
    """The reason for a word, with the detector's score if there is one."""
    if isinstance(word, Finding) and word.score is not None and not _OWN_NUMBERS.search(word.reason):
        return f"{word.reason} ({word.score:.2f})"
    return word.reason


def preview_page(title: str, techniques: Sequence[Previewed], notes: Sequence[str] = (), *, all_words: bool) -> str:
    """The page; ``notes`` are about the text itself, ``all_words`` adds the reasons of unmasked words."""
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
