"""A table of texts in its three forms: terminal, Markdown and HTML. Every table that is shown is a ``Grid``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from rich.table import Table

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
    tag: str = ""
    """A word after the label."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, the first of them over the labels, and rows."""

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[GridRow]
    kind: str = "plain"
    """Class of the table in the page's style sheet."""
    caption_unseen: bool = False

    def texts(self) -> list[list[str]]:
        """The entries row by row."""
        return [[str(entry) for entry in row.entries] for row in self.rows]

    @property
    def is_empty(self) -> bool:
        """Whether no entry has a number or word."""
        return not any(text.strip(f"{ABSENT} ‡") for texts in self.texts() for text in texts)


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
    rows = [[row.label, *texts] for row, texts in zip(grid.rows, grid.texts(), strict=True)]
    lines = [
        "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"
        for row in [list(map(str, grid.headings)), *rows]
    ]
    return "\n".join([lines[0], f"|{'|'.join(sides)}|", *lines[1:]])


def terminal_table(grid: Grid) -> "Table":
    """The table for printing by ``rich``."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.caption, title_justify="left", title_style="bold")
    for place, heading in enumerate(grid.headings):
        side = "left" if place == 0 or heading.words else "right"
        table.add_column(str(heading).replace(" (", "\n("), no_wrap=place == 0, justify=side)  # type: ignore[arg-type]
    marked = any(entry.sign for row in grid.rows for entry in row.entries)
    for row, following in zip(grid.rows, [*grid.rows[1:], None], strict=True):
        cells = []
        for entry in row.entries:
            # A blank replaces an absent mark, so that the numbers of a column are aligned.
            text = f"{entry}  " if marked and not entry.sign else str(entry)
            value, bracket, interval = text.partition(" [")
            cells.append(Text(value, style="bold").append(bracket + interval, style="not bold dim"))
        ends = following is not None and following.group != row.group
        table.add_row(Text(row.label), *cells, end_section=ends)
    return table


def html(grid: Grid) -> Markup:
    """The table as HTML, in a region that scrolls on a narrow page; all but ``Markup`` is escaped.

    Empty for a table without rows.
    """
    if not grid.rows:
        return Markup("")
    caption = Markup(
        '<caption class="unseen">%s</caption>' if grid.caption_unseen else "<caption><span>%s</span></caption>"
    )
    parts = [
        Markup('<div class="scroll" role="region" aria-label="%s" tabindex="0">') % grid.caption,
        Markup('<table class="%s">') % grid.kind,
        caption % grid.caption,
        _head(grid),
        Markup("<tbody>"),
    ]
    for before, row in zip([None, *grid.rows[:-1]], grid.rows, strict=True):
        begins = before is not None and before.group != row.group
        cells = _cells(row, grid)
        parts.append(
            _element("tr", cells, kind=f"{row.group} first" if begins and grid.kind == "numbers" else row.group)
        )
    return Markup("\n").join([*parts, Markup("</tbody></table></div>")])


def _element(tag: str, *content: str, kind: str = "", **attributes: str | int) -> Markup:
    given = {"class": kind, **attributes}
    written = Markup("").join(
        Markup(' %s="%s"') % (name.replace("_", "-"), value) for name, value in given.items() if value
    )
    return Markup(f"<{tag}%s>%s</{tag}>") % (written, Markup("").join(content))


def _head(grid: Grid) -> Markup:
    if not any(heading.text for heading in grid.headings):
        return Markup("")
    cells = [
        _element(
            "th",
            heading.text,
            _element("span", heading.note, kind="share") if heading.note else "",
            kind="text" if heading.words else "",
            scope="col",
        )
        for heading in grid.headings
    ]
    return _element("thead", _element("tr", *cells))


def _cells(row: GridRow, grid: Grid) -> Markup:
    tag = _element("span", row.tag, kind="kind") if row.tag else ""
    cells = [_element("th", row.label, tag, scope="row")]
    for entry, heading in zip(row.entries, grid.headings[1:], strict=True):
        # Label that the page writes before the entry if it is too narrow for columns.
        named = {"data_heading": str(heading)}
        cells.append(_element("td", *_content(entry), kind="text" if heading.words else "", **named))
    return Markup("").join(cells)


def _content(entry: Entry) -> Iterable[Markup | str]:
    yield entry.text
    if entry.sign:
        yield Markup(" ") + _element("span", entry.sign, kind=f"sign {entry.sign_kind}".strip(), aria_hidden="true")
        yield _element("span", entry.said, kind="unseen") if entry.said else ""
    if interval := entry.detail or entry.interval.strip("[]").replace(", ", "–"):
        yield Markup(" ") + _element("span", interval, kind="interval-text")
