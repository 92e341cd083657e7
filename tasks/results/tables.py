"""The rows of the summary as tables: techniques are columns, methods are lines, per dataset and measure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tasks.records.cells import NO_LANGUAGE_MODEL
from tasks.results.grid import Entry, Grid, GridRow, Heading
from tasks.results.measure import (
    ABOVE,
    BELOW,
    OTHER_PROTOCOL,
    Measure,
    Row,
    at_path,
    follows_protocol,
)
from tasks.results.measures import measures
from tasks.results.summary.estimate import Estimate, direction
from tasks.results.titles import cell_label, group_of, technique_name

SIGNS = {-1: BELOW, 0: "≈", 1: ABOVE}


@dataclass(frozen=True)
class Line:
    """One line of the table: a method with its rows of every technique."""

    method: str
    filler: str | None
    by_technique: dict[str, list[Row]]
    """Rows of all seeds by technique; pretrained and Oracle are under every technique."""
    label: str
    group: str
    """Kind of method, as ``group_of`` returns it."""


class TechniqueLine(NamedTuple):
    """A line under one technique; a reference belongs to none, and appears once."""

    technique: str | None
    line: Line
    rows: Sequence[Row]

    @property
    def label(self) -> str:
        """``Top-K, allow list``."""
        return f"{self.line.label}, {technique_name(self.technique)}" if self.technique else self.line.label


@dataclass(frozen=True)
class Table:
    """All lines of one dataset."""

    dataset: str
    techniques: list[str]
    lines: list[Line]
    recogniser_alone: Line | None = None
    """Line of the recogniser without a language model, if the dataset has speech: it has word error rates only."""

    @property
    def all_lines(self) -> list[Line]:
        """The lines of all systems, the recogniser alone first."""
        return [*([self.recogniser_alone] if self.recogniser_alone is not None else []), *self.lines]

    def conditions(self, *, alone: bool = False, by_line: bool = False) -> list[TechniqueLine]:
        """The lines with rows under each technique, references once, technique by technique or line by line.

        ``alone``: the recogniser alone too.
        """
        found = [
            TechniqueLine(technique if line.group != "reference" else None, line, line.by_technique[technique])
            for technique in self.techniques
            for line in (self.all_lines if alone else self.lines)
            if line.by_technique[technique] and (line.group != "reference" or technique == self.techniques[0])
        ]
        return sorted(found, key=lambda one: self.all_lines.index(one.line)) if by_line else found

    @property
    def rows(self) -> list[Row]:
        """All rows, once under each technique."""
        return [row for line in self.lines for found in line.by_technique.values() for row in found]

    @property
    def kind_of_speech(self) -> str:
        """``synthetic speech`` or ``recorded speech``; empty without speech."""
        if self.recogniser_alone is None:
            return ""
        return "synthetic speech" if any(row.get("synthetic_speech") for row in self.rows) else "recorded speech"

    def headings(self) -> list[Heading]:
        """The headings: the labels, then each technique with its name and its share of masked words, and for mixed
        text the shares of the languages masked least and most."""
        found = [Heading("method")]
        for technique in self.techniques:
            row = next((row for row in self.rows if row["technique"] == technique), {})
            least, most = row.get("least_masked_language"), row.get("most_masked_language")
            note = "" if row.get("masked_fraction") is None else f"{row['masked_fraction']:.1%} masked"
            if note and least is not None and most is not None:
                note += f"; {least:.1%} to {most:.1%} by language"
            found.append(Heading(technique_name(technique), note))
        return found


def tables(rows: Sequence[Row]) -> list[Table]:
    """The rows of the summary as one table per dataset, in the order of the rows."""
    return [
        _table(dataset, [row for row in rows if row["dataset"] == dataset]) for dataset in _distinct(rows, "dataset")
    ]


def _table(dataset: str, rows: Sequence[Row]) -> Table:
    techniques = [technique for technique in _distinct(rows, "technique") if technique is not None]
    fillers = [filler for filler in _distinct(rows, "filler") if filler is not None]
    lines: list[Line] = []
    for filler, method in dict.fromkeys((row["filler"], row["method"]) for row in rows):
        mine = [row for row in rows if (row["filler"], row["method"]) == (filler, method)]
        by_technique = {
            technique: [_under(row, technique) for row in mine if row["technique"] in (technique, None)]
            for technique in techniques
        }
        label = cell_label(method, filler if len(fillers) > 1 else None)
        group = group_of(mine[0]["technique"], method, filler)
        lines.append(Line(method, filler, by_technique, label, group))
    alone = next((line for line in lines if line.method == NO_LANGUAGE_MODEL), None)
    return Table(dataset, techniques, [line for line in lines if line is not alone], alone)


def _under(row: Row, technique: str) -> Row:
    """A row for a technique: pretrained and Oracle have numbers for the words that each one masks."""
    if row["technique"]:
        return row
    found = dict(row)
    for each in measures():
        if each.by_technique:
            column = "masked_word_errors" if each.of_speech else "masked_words"
            record = (row.get(column) or {}).get(technique)
            found[each.name] = at_path(record, each.field.split(".")[2:])
            if each.interval:
                found[f"{each.name}_ci"] = at_path(record, each.interval.split(".")[2:])
    return found


def _distinct(rows: Sequence[Row], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))


def number_text(number: Estimate | None, digits: int = 1) -> str:
    """``445.1 [430, 460]``, ``445.1 ± 3.2`` over several seeds, a dash without a number."""
    return str(number_entry(number, digits))


def number_entry(number: Estimate | None, digits: int = 1) -> Entry:
    """A number and its interval, or its deviation over several seeds."""
    if number is None:
        return Entry()
    interval = ""
    if number.deviation is not None:
        interval = f"± {_value(number.deviation, digits)}"
    elif number.low is not None and number.high is not None:
        interval = f"[{_limit(number.low, digits)}, {_limit(number.high, digits)}]"
    return Entry(_value(number.value, digits), interval)


def _value(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.{digits}f}"


def _limit(value: float, digits: int) -> str:
    """Limits of an interval need no more than three digits."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:.{digits}f}"


def entry(measure: Measure, rows: Sequence[Row]) -> Entry:
    """The number of a condition with its interval, and a mark if it differs significantly from its reference."""
    number, reference = measure.estimate(rows), measure.reference
    if number is not None and measure.interval_over_seeds:
        number = replace(number, deviation=None)
    shown = number_entry(number, measure.digits)
    if measure.protocol and not follows_protocol(rows):
        return replace(shown, sign=OTHER_PROTOCOL)
    if number is None or reference is None or reference.column == measure.name:
        return shown
    way = direction(rows, reference.column, reference.neutral)
    if not way:
        return shown
    kind = "good" if (way < 0) == (measure.better == "lower") else "bad"
    return replace(shown, sign=SIGNS[way], said=f"{reference.sides[way > 0]} {reference.name}", sign_kind=kind)


def measure_grid(table: Table, measure: Measure) -> Grid:
    """The table of one measure."""
    rows = [
        GridRow(line.label, [entry(measure, line.by_technique[name]) for name in table.techniques], line.group)
        for line in (table.all_lines if measure.of_speech else table.lines)
    ]
    caption = measure.heading or measure.title
    caption = f"{caption}, {table.kind_of_speech}" if measure.of_speech else caption
    return Grid(caption, table.headings(), rows, "numbers")
