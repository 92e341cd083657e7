"""The rows of the page's tables: numbers as text, with what a reader must know of each."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboards.paper_results import DATASETS, MASKED_SHARES, RESULTS, TECHNIQUES, printed
from dashboards.series import Series, series_of
from tasks.records.cells import NO_LANGUAGE_MODEL
from tasks.results.summary.estimate import direction, estimate
from tasks.results.summary.frequency_table import class_tables
from tasks.results.summary.summary_table import (
    OTHER_PROTOCOL,
    Line,
    Row,
    Table,
    follows_protocol,
    method_name,
    number_text,
    technique_name,
)

_SIGNS = {-1: "▼", 0: "≈", 1: "▲"}
_SAID = {-1: "below", 0: "not told apart from", 1: "above"}


@dataclass(frozen=True)
class Comparison:
    """A perplexity relative to a reference."""

    reference: str
    difference: str
    """``+42.5%``, and ``×25.4`` where the difference is large."""
    sign: str
    """``▼`` below or ``▲`` above by an interval that excludes 1, else ``≈``."""
    said: str
    """The sign in words."""
    kind: str
    """``below``, ``above`` or ``alike``: class in the style sheet."""


@dataclass(frozen=True)
class NumberCell:
    """One number of a table."""

    value: str
    interval: str
    comparisons: list[Comparison]
    best: bool
    """Whether it is the lowest of its technique among fills."""
    columns: int = 1


@dataclass(frozen=True)
class NumberRow:
    """One line of a table."""

    look: Series
    group: str
    """``reference``, ``baseline``, ``filler`` or ``control``."""
    first_of_group: bool
    cells: list[NumberCell]


MakeCell = Callable[[Sequence[Row], bool, int], NumberCell]
"""Makes a cell of rows; takes whether it is the best of its technique, and how many columns it spans."""


def number_rows(table: Table, field: str, *, spanning: bool = True) -> list[NumberRow]:
    """The lines of the table of one measure; pretrained and Oracle span all techniques.

    Not so with ``spanning=False``: for measures of which they have a number under each technique.
    """

    def cell(found: Sequence[Row], best: bool, columns: int) -> NumberCell:
        return _cell(found, field, best, columns)

    return rows_of(table, table.lines, cell, lowest_fills(table, field, follows_protocol), spanning=spanning)


def rows_of(
    table: Table, lines: Sequence[Line], cell: MakeCell, best: Mapping[str, Line | None], *, spanning: bool
) -> list[NumberRow]:
    """The rows of ``lines``, with ``cell`` for each technique; ``best`` names the line to be shown as best of each.

    With ``spanning`` a reference has one cell for all techniques.
    """
    looks = series_of(lines)
    rows: list[NumberRow] = []
    for line in lines:
        group = group_of(line)
        if group == "reference" and spanning:
            cells = [cell(line.by_technique[table.techniques[0]], False, len(table.techniques))]
        else:
            cells = [cell(line.by_technique[name], best[name] is line, 1) for name in table.techniques]
        first = bool(rows) and rows[-1].group != group
        rows.append(NumberRow(looks[line.filler, line.method], group, first, cells))
    return rows


def group_of(line: Line) -> str:
    """What kind of method a line is."""
    if line.method in (NO_LANGUAGE_MODEL, "pretrained", "oracle"):
        return "reference"
    if line.method.startswith("baseline"):
        return "baseline"
    return "filler" if line.filler else "control"


def lowest_fills(
    table: Table, field: str, counts: Callable[[Sequence[Row]], bool] = lambda _: True
) -> dict[str, Line | None]:
    """Of each technique the fill with the lowest number, among those whose rows count."""
    found: dict[str, Line | None] = {}
    for technique in table.techniques:
        numbers = [
            (number.value, line)
            for line in table.lines
            if group_of(line) in ("filler", "control")
            and counts(line.by_technique[technique])
            and (number := estimate(line.by_technique[technique], field)) is not None
        ]
        found[technique] = min(numbers, key=lambda pair: pair[0])[1] if numbers else None
    return found


def _cell(rows: Sequence[Row], field: str, best: bool, columns: int) -> NumberCell:
    number = estimate(rows, field)
    if number is None:
        return NumberCell("–", "", [], False, columns)
    value, _, rest = number_text(number).partition(" ")
    interval = rest.strip("[]").replace(", ", "–") if rest.startswith("[") else rest
    if number.deviation is not None:
        interval = f"± {number.deviation:.1f}, {number.seeds} seeds: {number.low:.1f}–{number.high:.1f}"
    known = field.removeprefix("perplexity")
    comparisons = [
        comparison
        for name, ratio in (("Oracle", f"ratio_to_oracle{known}"), ("Baseline1", f"ratio_to_baseline1{known}"))
        if (comparison := _comparison(rows, name, ratio)) is not None
    ]
    if not follows_protocol(rows):
        value += f" {OTHER_PROTOCOL}"
    return NumberCell(value, interval, comparisons, best, columns)


def _comparison(rows: Sequence[Row], name: str, field: str) -> Comparison | None:
    ratio = estimate(rows, field)
    if ratio is None:
        return None
    way = direction(rows, field)
    difference = f"{ratio.value - 1:+.1%}".replace("-", "−") if ratio.value < 3 else f"×{ratio.value:.1f}"
    kind = {-1: "below", 0: "alike", 1: "above"}[way]
    return Comparison(name, difference, _SIGNS[way], f"{_SAID[way]} {name}", kind)


def masked_counts(table: Table) -> list[tuple[str, str, str, str]]:
    """Of each technique: its name, how many test words it would mask, their share, and how many of them are unknown."""
    found = []
    for technique in table.techniques:
        rows = [row for line in table.lines for row in line.by_technique[technique]]
        told_apart = [row.get("masked_words", {}) for row in rows]
        measured = next((words[technique] for words in told_apart if technique in words), None)
        if measured is not None:
            counts = f"{measured['words']:,}", f"{measured['share']:.1%}", f"{measured['unknown_words']:,}"
            found.append((technique_name(technique), *counts))
    return found


@dataclass(frozen=True)
class FrequencyTable:
    """Perplexities by how frequent a word is in generic text, for one technique."""

    technique: str
    headings: list[tuple[str, str]]
    """Class, and how many targets of the test text it has."""
    rows: list[tuple[Series, str, bool, list[str]]]
    """Look and group of a line, whether its group begins there, and a number for each class."""


def frequency_tables(table: Table) -> list[FrequencyTable]:
    """One for each technique; none where evaluation had no counts of generic words."""
    looks = series_of(table.lines)
    found = []
    for classes in class_tables(table):
        rows: list[tuple[Series, str, bool, list[str]]] = []
        for line, numbers in classes.lines:
            group = group_of(line)
            texts = [number_text(number).partition(" ")[0] for number in numbers]
            rows.append((looks[line.filler, line.method], group, bool(rows) and rows[-1][1] != group, texts))
        headings = [(_class_name(name), f"{targets:,}") for name, targets in classes.headings]
        found.append(FrequencyTable(technique_name(classes.technique), headings, rows))
    return found


def _class_name(name: str) -> str:
    """``rank 101-1000`` as ``rank 101–1,000``."""
    return re.sub(r"\d+", lambda number: f"{int(number.group()):,}", name).replace("-", "–")


@dataclass(frozen=True)
class PaperCell:
    """One number of the paper's tables, or one of ours beside them."""

    text: str
    columns: int = 1
    interval: str = ""
    """Of ours alone: the paper gives none."""
    sign: str = ""
    """``▼``, ``▲`` or ``≈`` of ours, against Baseline1 or, of word error rates, the pretrained model."""
    said: str = ""
    """The sign in words."""
    edge: bool = False
    """Whether a group of columns begins here."""


@dataclass(frozen=True)
class PaperTable:
    """The paper's numbers beside ours."""

    groups: list[tuple[str, str, list[str]]]
    """Name, what it is, and techniques of each group of columns."""
    rows: list[tuple[str, bool, list[PaperCell]]]
    """Name, whether the row is ours alone, and its cells."""


def paper_table(tables: Sequence[Table]) -> PaperTable:
    """Tables 3 to 6 with our datasets in front; a row per method and filler, the same methods below each other."""
    groups = [
        (table.dataset, "perplexity, here", [technique_name(name) for name in table.techniques]) for table in tables
    ]
    spoken = [table for table in tables if table.recogniser_alone is not None]
    groups += [
        (
            f"{table.dataset} speech",
            f"word error rate in %, here, {table.kind_of_speech}",
            [technique_name(name) for name in table.techniques],
        )
        for table in spoken
    ]
    groups += [(name, what, [technique_name(technique) for technique in TECHNIQUES]) for name, what in DATASETS.items()]
    ours = {_paper_name(line): line for table in tables for line in _lines(table)}
    names = sorted([*RESULTS, *(name for name in ours if name not in RESULTS)], key=_order)
    rows = []
    for name in names:
        cells = [_our_cells(_line(table, name), table, _PERPLEXITY) for table in tables]
        cells += [_our_cells(_line(table, name), table, _WORD_ERROR_RATE) for table in spoken]
        cells += [_paper_cells(name, dataset) for dataset in DATASETS]
        edged = [replace(cell, edge=place == 0) for group in cells for place, cell in enumerate(group)]
        rows.append((name, name not in RESULTS, edged))
    return PaperTable(groups, rows)


def _paper_name(line: Line) -> str:
    return method_name(line.method) + (f", {line.filler}" if line.filler else "")


def _order(name: str) -> tuple[int, str, str]:
    """References, baselines, Top-1, Top-K, fine-tuned ones, then what the paper does not have."""
    method, _, filler = name.partition(", ")
    known = list(dict.fromkeys(printed_name.partition(", ")[0] for printed_name in RESULTS))
    return (known.index(method) if method in known else len(known), method if method not in known else "", filler)


def _lines(table: Table) -> list[Line]:
    """All lines, that of the recogniser alone first."""
    return [*([table.recogniser_alone] if table.recogniser_alone is not None else []), *table.lines]


def _line(table: Table, name: str) -> Line | None:
    return next((line for line in _lines(table) if _paper_name(line) == name), None)


@dataclass(frozen=True)
class _OurMeasure:
    field: str
    factor: float
    reference: str
    """Column of the comparison that the sign is about."""
    neutral: float
    name: str
    """What the reference is called."""


_PERPLEXITY = _OurMeasure("perplexity", 1, "ratio_to_baseline1", 1, "Baseline1")
_WORD_ERROR_RATE = _OurMeasure("wer", 100, "wer_difference_to_pretrained", 0, "the pretrained model")


def _our_cells(line: Line | None, table: Table, measure: _OurMeasure) -> list[PaperCell]:
    if line is None:
        return [PaperCell("")] * len(table.techniques)
    if group_of(line) == "reference":
        return [replace(_our_cell(line, table.techniques[0], measure), columns=len(table.techniques))]
    return [_our_cell(line, technique, measure) for technique in table.techniques]


def _our_cell(line: Line, technique: str, measure: _OurMeasure) -> PaperCell:
    rows = line.by_technique[technique]
    number = estimate(rows, measure.field)
    if number is None:
        return PaperCell("")
    shown = number.times(measure.factor)
    value, _, rest = number_text(shown).partition(" ")
    interval = rest.strip("[]").replace(", ", "–")
    if not follows_protocol(rows):
        return PaperCell(f"{value} {OTHER_PROTOCOL}", interval=interval)
    if estimate(rows, measure.reference) is None:
        return PaperCell(value, interval=interval)
    way = direction(rows, measure.reference, measure.neutral)
    return PaperCell(value, interval=interval, sign=_SIGNS[way], said=f"{_SAID[way]} {measure.name}")


def _paper_cells(name: str, dataset: str) -> list[PaperCell]:
    entry = RESULTS.get(name, {}).get(dataset)
    if isinstance(entry, str):
        return [PaperCell(entry, columns=len(TECHNIQUES))]
    return [PaperCell(printed(name, dataset, technique) or "") for technique in TECHNIQUES]


def masked_share_rows(tables: Sequence[Table]) -> list[tuple[str, list[str], bool]]:
    """Name of the corpus, share masked by each technique of ours or the paper's, whether it is ours."""
    techniques = list(dict.fromkeys([*(name for table in tables for name in table.techniques), *TECHNIQUES]))
    rows: list[tuple[str, list[str], bool]] = []
    for table in tables:
        shares = [table.masked_fraction(name) if name in table.techniques else None for name in techniques]
        rows.append((table.dataset, [f"{share:.1%}" if share is not None else "" for share in shares], True))
    for corpus, numbers in MASKED_SHARES.items():
        by_name = dict(zip(TECHNIQUES, numbers, strict=True))
        rows.append((corpus, [f"{by_name[name]}%" if name in by_name else "" for name in techniques], False))
    return rows


def masked_share_techniques(tables: Sequence[Table]) -> list[str]:
    """Headings of ``masked_share_rows``."""
    names = dict.fromkeys([*(name for table in tables for name in table.techniques), *TECHNIQUES])
    return [technique_name(name) for name in names]


def fill_rows(table: Table) -> list[dict[str, Any]]:
    """Per technique and method: markers, different fills, fills against the rule, masked words hit by coincidence."""
    rows = []
    for technique in table.techniques:
        for line in table.lines:
            markers = estimate(line.by_technique[technique], "markers")
            if group_of(line) not in ("filler", "control") or markers is None:
                continue
            numbers = {
                name: estimate(line.by_technique[technique], name)
                for name in ("distinct_fills", "fallback_count", "restoration_rate", "restoration_by_frequency")
            }
            rows.append(
                {
                    "technique": technique_name(technique),
                    "method": line.label,
                    "markers": f"{markers.value:,.0f}",
                    "distinct": _count(numbers["distinct_fills"]),
                    "fallbacks": _count(numbers["fallback_count"]),
                    "restored": _share(numbers["restoration_rate"]),
                    "guessed": _share(numbers["restoration_by_frequency"]),
                }
            )
    return rows


def _count(number: Any) -> str:
    return f"{number.value:,.0f}" if number else "–"


def _share(number: Any) -> str:
    return f"{number.value:.2%}" if number else "–"
