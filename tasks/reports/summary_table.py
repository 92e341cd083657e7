"""The table: techniques across, methods down, one table per dataset; as Markdown and in the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from tasks.reports.estimate import Estimate, direction, estimate

Row = Mapping[str, Any]

METHOD_NAMES = {
    "pretrained": "Pretrained",
    "oracle": "Oracle",
    "baseline0": "Baseline0",
    "baseline1": "Baseline1",
    "top_1": "Top-1",
    "top_k": "Top-K",
    "sample": "Sample",
    "unigram": "Unigram",
    "surrogate": "Surrogate",
}
BELOW, ABOVE = "▼", "▲"
LEGEND = (
    f"{BELOW} below, {ABOVE} above Baseline1 of the same technique: the interval of the paired ratio excludes 1. "
    "Several seeds: mean ± standard deviation."
)
ABSENT = "–"


@dataclass(frozen=True)
class Line:
    """One line of the table: a method with its rows of every technique."""

    method: str
    filler: str | None
    by_technique: dict[str, list[Row]]
    """The rows of all seeds by technique; pretrained and Oracle stand under every technique."""
    label: str


@dataclass(frozen=True)
class Table:
    """All lines of one dataset."""

    dataset: str
    techniques: list[str]
    lines: list[Line]

    def masked_fraction(self, technique: str) -> float | None:
        """Share of the training words that the technique masked."""
        for line in self.lines:
            for row in line.by_technique[technique]:
                if row["technique"] == technique:
                    return row["masked_fraction"]
        return None


def tables(rows: Sequence[Row]) -> list[Table]:
    """The rows of the summary as one table per dataset, in the order in which they stand."""
    return [
        _table(dataset, [row for row in rows if row["dataset"] == dataset]) for dataset in _distinct(rows, "dataset")
    ]


def _table(dataset: str, rows: Sequence[Row]) -> Table:
    techniques = [technique for technique in _distinct(rows, "technique") if technique is not None]
    fillers = [filler for filler in _distinct(rows, "filler") if filler is not None]
    lines = []
    for filler, method in dict.fromkeys((row["filler"], row["method"]) for row in rows):
        mine = [row for row in rows if (row["filler"], row["method"]) == (filler, method)]
        by_technique = {
            technique: [row for row in mine if row["technique"] in (technique, None)] for technique in techniques
        }
        label = method_name(method) + (f", {filler}" if filler and len(fillers) > 1 else "")
        lines.append(Line(method, filler, by_technique, label))
    return Table(dataset, techniques, lines)


def _distinct(rows: Sequence[Row], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))


def method_name(method: str) -> str:
    """How the paper writes a method; a name of the user's own stays as it is."""
    return METHOD_NAMES.get(method, method)


def technique_name(technique: str) -> str:
    """``allow_list`` as ``allow list``."""
    return technique.replace("_", " ")


def number_text(number: Estimate | None) -> str:
    """``445.1 [430, 460]``, ``445.1 ± 3.2`` over several seeds, a dash where there is none."""
    if number is None:
        return ABSENT
    if number.deviation is not None:
        return f"{number.value:.1f} ± {number.deviation:.1f}"
    if number.low is None or number.high is None:
        return f"{number.value:.1f}"
    return f"{number.value:.1f} [{_limit(number.low)}, {_limit(number.high)}]"


def _limit(value: float) -> str:
    """Limits of an interval need no more than three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def mark(rows: Sequence[Row], field: str) -> str:
    """``▼`` or ``▲`` where the rows differ from Baseline1, else nothing; ``field`` is a column with perplexities."""
    ratio = "ratio_to_baseline1" + field.removeprefix("perplexity")
    return {-1: BELOW, 1: ABOVE, 0: ""}[direction(rows, ratio)]


_SECTIONS = (
    ("perplexity", "Perplexity on the unmasked test text, all words"),
    ("perplexity_known", "Perplexity over words of the vocabulary alone"),
)


def _headings(table: Table) -> list[str]:
    return [_heading(table, technique) for technique in table.techniques]


def _heading(table: Table, technique: str) -> str:
    share = table.masked_fraction(technique)
    return technique_name(technique) + (f" ({share:.1%} masked)" if share is not None else "")


def _cells(line: Line, table: Table, field: str) -> Iterator[str]:
    for technique in table.techniques:
        rows = line.by_technique[technique]
        yield f"{number_text(estimate(rows, field))} {mark(rows, field)}".rstrip()


def _share_of_unknown_words(table: Table) -> str:
    rates = [row["oov_rate"] for line in table.lines for rows in line.by_technique.values() for row in rows]
    known = [rate for rate in rates if rate is not None]
    return f"{max(known):.1%} of the test words are outside the vocabulary. " if known else ""


def markdown(rows: Sequence[Row]) -> str:
    """The tables of all datasets as a Markdown document."""
    parts = ["# Results"]
    for table in tables(rows):
        parts.append(f"## {table.dataset}")
        for field, title in _SECTIONS:
            lines = [f"| method | {' | '.join(_headings(table))} |", f"|---{'|---:' * len(table.techniques)}|"]
            lines += [f"| {line.label} | {' | '.join(_cells(line, table, field))} |" for line in table.lines]
            parts += [f"### {title}", "\n".join(lines)]
        parts.append(f"{_share_of_unknown_words(table)}{LEGEND}")
    return "\n\n".join(parts) + "\n"


def print_tables(rows: Sequence[Row], stream: IO[str] | None = None) -> None:
    """Print the tables of all datasets, in colour where the stream is a terminal."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        # Without a terminal rich takes 80 columns and would break the cells.
        console.width = 400
    for table in tables(rows):
        for field, title in _SECTIONS:
            grid = Grid(
                title=f"{table.dataset}: {title[0].lower()}{title[1:]}", title_justify="left", title_style="bold"
            )
            grid.add_column("method", no_wrap=True)
            for heading in _headings(table):
                grid.add_column(heading.replace(" (", "\n("), justify="right")
            for line, following in zip(table.lines, [*table.lines[1:], None], strict=True):
                group_ends = following is not None and _group(following) != _group(line)
                cells = [_coloured(text, Text) for text in _cells(line, table, field)]
                grid.add_row(Text(line.label), *cells, end_section=group_ends)
            console.print(grid)
        console.print(Text(f"{_share_of_unknown_words(table)}{LEGEND}", style="dim"), soft_wrap=True)


def _group(line: Line) -> str:
    if line.method in ("pretrained", "oracle"):
        return "reference"
    if line.method.startswith("baseline"):
        return "baseline"
    return "filler" if line.filler else "control"


def _coloured(text: str, kind: Callable[..., Any]) -> Any:
    # A blank stands for an absent mark, so that the numbers of a column stand below each other.
    text = text if text.endswith((BELOW, ABOVE)) else f"{text}  "
    value, bracket, interval = text.partition(" [")
    coloured = kind(value, style="bold")
    coloured.append(bracket + interval, style="not bold dim")
    return coloured
