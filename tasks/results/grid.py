"""A table of texts, and its Markdown. Every table that is shown is a ``Grid``.

``dashboards/report_page.html`` has its form on the page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table; on a page, ``Markup`` texts are inserted without escaping."""

    text: str = ABSENT
    interval: str = ""
    """``[430, 461]``, or ``± 3.2`` over several seeds."""
    sign: str = ""
    said: str = ""
    """The sign in words."""
    sign_kind: str = ""
    """Colour of the sign on the page: ``good`` or ``bad``."""
    detail: str = ""
    """Text on the page instead of the interval."""

    @property
    def note(self) -> str:
        """The text after the number on the page: ``430–461``."""
        return self.detail or self.interval.strip("[]").replace(", ", "–")

    def __str__(self) -> str:
        return " ".join(part for part in (self.text, self.interval, self.sign) if part)


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a column."""

    text: str
    note: str = ""
    """Note below the heading, or in brackets after it."""
    words: bool = False
    """Whether the column has words, which are aligned left, and not numbers."""

    def __str__(self) -> str:
        return f"{self.text} ({self.note})" if self.note else self.text


@dataclass(frozen=True, slots=True)
class GridRow:
    """One line of a table."""

    label: str
    entries: Sequence[Entry]
    group: str = ""
    """Group of the line; lines of one group are adjacent. On the page, its class in the style sheet."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, the first of them over the labels, and rows."""

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[GridRow]
    kind: str = "plain"
    """Class of the table in the page's style sheet."""
    caption_unseen: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no entry has a number or word."""
        return not any(str(entry).strip(f"{ABSENT} ‡") for row in self.rows for entry in row.entries)


def plain_grid(
    caption: str,
    headings: Iterable[object],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "plain",
    caption_unseen: bool = False,
) -> Grid:
    """A table of texts; the first of each row is its label. A heading may be a text."""
    heads = [heading if isinstance(heading, Heading) else Heading(str(heading)) for heading in headings]
    lines = [GridRow(row[0], [Entry(text) for text in row[1:]]) for row in rows]
    return Grid(caption, heads, lines, kind, caption_unseen)


def words(*headings: str) -> list[Heading]:
    """Headings of columns with words."""
    return [Heading(heading, words=True) for heading in headings]


def markdown(grid: Grid) -> str:
    """The table in Markdown, without its caption."""
    sides = ["---" if place == 0 or heading.words else "---:" for place, heading in enumerate(grid.headings)]
    rows = [[row.label, *map(str, row.entries)] for row in grid.rows]
    lines = [
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"
        for row in [list(map(str, grid.headings)), *rows]
    ]
    return "\n".join([lines[0], f"|{'|'.join(sides)}|", *lines[1:]])
