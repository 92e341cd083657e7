"""A table of texts, and its three forms: a terminal's, Markdown and HTML. Every table that is shown is one of these."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from rich.table import Table

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number relative to a reference, as the page shows it below the number."""

    reference: str
    difference: str
    """``+42.5%``, ``×25.4`` where the difference is large, or points."""
    sign: str
    """``▼`` below or ``▲`` above by an interval, else ``≈``."""
    said: str
    """The sign in words."""
    kind: str
    """``good``, ``bad`` or ``alike``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table; on a page, texts that are ``Markup`` are put in as they are."""

    text: str = ABSENT
    interval: str = ""
    """``[430, 461]``, or ``± 3.2`` over several seeds."""
    sign: str = ""
    said: str = ""
    """The sign in words."""
    sign_kind: str = ""
    """``good`` or ``bad``: its colour on the page."""
    detail: str = ""
    """What the page says in place of the interval."""
    comparisons: tuple[Comparison, ...] = ()
    best: str = ""
    """What it is the best of; empty where it is not."""
    columns: int = 1
    edge: bool = False
    """Whether a group of columns begins here."""

    def __str__(self) -> str:
        return " ".join(part for part in (self.text, self.interval, self.sign) if part)


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a column."""

    text: str
    note: str = ""
    """Below it, or in brackets behind it."""
    words: bool = False
    """Whether the column holds words, which stand on the left, and not numbers."""
    edge: bool = False
    """Whether a group of columns begins here."""
    short: str = ""
    """What a narrow column says instead."""

    def __str__(self) -> str:
        return f"{self.text} ({self.note})" if self.note else self.text


@dataclass(frozen=True, slots=True)
class GridRow:
    """One line of a table."""

    label: str
    entries: Sequence[Entry]
    group: str = ""
    """Lines of one group stand together; on the page its class in the style sheet."""
    colour: str = ""
    """Class of the dot before the label."""
    tag: str = ""
    """A word behind the label."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings, the first of them over the labels, and rows."""

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[GridRow]
    kind: str = "plain"
    """Its class in the page's style sheet."""
    label: str = ""
    """What the page calls it for those who cannot see it; the caption where there is none."""
    caption_unseen: bool = False
    large: bool = False
    """Whether the page writes its numbers in large type."""
    groups: Sequence[tuple[Heading, int]] = ()
    """Headings above the headings, and how many columns each spans; the first one stands behind the labels."""

    def texts(self) -> list[list[str]]:
        """The entries row by row; one that spans columns stands in each."""
        return [[str(entry) for entry in row.entries for _ in range(entry.columns)] for row in self.rows]

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
    label: str = "",
    caption_unseen: bool = False,
) -> Grid:
    """A table of texts; the first of each row is its label. A heading may be a text."""
    heads = [heading if isinstance(heading, Heading) else Heading(str(heading)) for heading in headings]
    lines = [GridRow(row[0], [Entry(text) for text in row[1:]]) for row in rows]
    return Grid(caption, heads, lines, kind, label, caption_unseen)


def words(*headings: str) -> list[Heading]:
    """Headings of columns that hold words."""
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
    """The table as ``rich`` prints it."""
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
            # A blank stands for an absent mark, so that the numbers of a column stand below each other.
            text = f"{entry}  " if marked and not entry.sign else str(entry)
            value, bracket, interval = text.partition(" [")
            cells += [Text(value, style="bold").append(bracket + interval, style="not bold dim")] * entry.columns
        ends = following is not None and following.group != row.group
        table.add_row(Text(row.label), *cells, end_section=ends)
    return table


def html(grid: Grid) -> Markup:
    """The table as HTML, in a region that scrolls where the page is narrow; all but ``Markup`` is escaped."""
    caption = Markup(
        '<caption class="unseen">%s</caption>' if grid.caption_unseen else "<caption><span>%s</span></caption>"
    )
    parts = [
        Markup('<div class="scroll" role="region" aria-label="%s" tabindex="0">') % (grid.label or grid.caption),
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

    def cell(heading: Heading, kind: str, scope: str = "col", **attributes: int) -> Markup:
        text = _element("abbr", heading.short, title=heading.text) if heading.short else heading.text
        note = _element("span", heading.note, kind="share") if heading.note else ""
        return _element("th", text, note, kind=kind, scope=scope, **attributes)

    cells = [cell(heading, " ".join(["text"] * heading.words + ["edge"] * heading.edge)) for heading in grid.headings]
    if not grid.groups:
        return _element("thead", _element("tr", *cells))
    above = [cell(heading, "group edge", "colgroup", colspan=columns) for heading, columns in grid.groups]
    first = cell(grid.headings[0], "", rowspan=2)
    return _element("thead", _element("tr", first, *above), _element("tr", *cells[1:]))


def _cells(row: GridRow, grid: Grid) -> Markup:
    dot = _element("span", kind=f"dot {row.colour}", aria_hidden="true") if row.colour else ""
    tag = _element("span", row.tag, kind="kind") if row.tag else ""
    cells = [_element("th", dot, row.label, tag, scope="row")]
    column = 1
    for entry in row.entries:
        kinds = {
            "best": bool(entry.best),
            "spanning": entry.columns > 1,
            "edge": entry.edge,
            "text": grid.headings[column].words,
        }
        kind = " ".join(name for name, given in kinds.items() if given)
        spans = {"colspan": entry.columns} if entry.columns > 1 else {}
        cells.append(_element("td", *_content(entry, grid), kind=kind, **spans))
        column += entry.columns
    return Markup("").join(cells)


def _content(entry: Entry, grid: Grid) -> Iterable[Markup | str]:
    if entry.best:
        yield _element("span", _hidden("★"), _element("span", entry.best, kind="unseen"), kind="best-mark")
    yield _element("span", entry.text, kind="value") if grid.large else entry.text
    if entry.sign:
        yield Markup(" ") + _hidden(entry.sign, f"sign {entry.sign_kind}".strip())
        yield _element("span", entry.said, kind="unseen") if entry.said else ""
    if interval := entry.detail or entry.interval.strip("[]").replace(", ", "–"):
        yield Markup(" " if grid.large else "") + _element("span", interval, kind="interval-text")
    if entry.comparisons:
        yield Markup(" ") + _element("span", *map(_comparison, entry.comparisons), kind="comparisons")


def _comparison(comparison: Comparison) -> Markup:
    name = _element("span", comparison.reference, kind="reference-name")
    said = _element("span", f"{comparison.said},", kind="unseen")
    content = (name, " ", _hidden(comparison.sign), said, " ", comparison.difference)
    return _element("span", *content, kind=f"comparison {comparison.kind}")


def _hidden(text: str, kind: str = "") -> Markup:
    """For eyes alone: the words beside it say the same."""
    return _element("span", text, kind=kind, aria_hidden="true")
