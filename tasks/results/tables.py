"""The rows of the summary as tables: techniques across, methods down, one table for each dataset and measure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED
from tasks.results.grid import ABSENT, Comparison, Entry, Grid, GridRow, Heading
from tasks.results.measure import (
    ABOVE,
    BELOW,
    DOCUMENT,
    OTHER_PROTOCOL,
    PAGE,
    Measure,
    Reference,
    Row,
    at_path,
    follows_protocol,
)
from tasks.results.measures import measures
from tasks.results.summary.estimate import Estimate, estimate, over_seeds
from tasks.results.titles import cell_label, group_of, method_colour, technique_name

SIGNS = {-1: BELOW, 0: "≈", 1: ABOVE}
_FURTHER_COLOURS = range(6, 12)


@dataclass(frozen=True)
class Line:
    """One line of the table: a method with its rows of every technique."""

    method: str
    filler: str | None
    by_technique: dict[str, list[Row]]
    """The rows of all seeds by technique; pretrained and Oracle stand under every technique."""
    label: str
    colour: str
    """Class in the style sheet, the same everywhere on the page: ``c0`` to ``c11``, ``oracle``, ``pretrained`` or
    ``alone``."""
    group: str
    """What kind of method it is, as ``group_of`` says."""

    @property
    def is_tuned(self) -> bool:
        """Whether its filler was fine-tuned on the masked text."""
        return any(row["filler_base"] for rows in self.by_technique.values() for row in rows)

    @property
    def shape(self) -> str:
        """Of its marks: ``square`` for baselines, ``circle`` for fillers and references, ``diamond`` for controls."""
        return {"baseline": "square", "control": "diamond"}.get(self.group, "circle")


@dataclass(frozen=True)
class Table:
    """All lines of one dataset."""

    dataset: str
    techniques: list[str]
    lines: list[Line]
    recogniser_alone: Line | None = None
    """The recogniser without a language model, where the dataset has speech: it has word error rates only."""

    @property
    def all_lines(self) -> list[Line]:
        """Those of all systems: the recogniser alone stands in front."""
        return [*([self.recogniser_alone] if self.recogniser_alone is not None else []), *self.lines]

    def lines_of(self, measure: Measure) -> list[Line]:
        """The lines that the table of a measure has."""
        return self.all_lines if measure.of_speech else self.lines

    @property
    def rows(self) -> list[Row]:
        """All rows, once under each technique."""
        return [row for line in self.lines for found in line.by_technique.values() for row in found]

    @property
    def kind_of_speech(self) -> str:
        """``synthetic speech`` or ``recorded speech``; empty where there is none."""
        if self.recogniser_alone is None:
            return ""
        return "synthetic speech" if any(row.get("synthetic_speech") for row in self.rows) else "recorded speech"

    def masked_fraction(self, technique: str) -> float | None:
        """Share of the training words that the technique masked."""
        found = (row for line in self.lines for row in line.by_technique[technique])
        return next((row["masked_fraction"] for row in found if row["technique"] == technique), None)

    def masked_note(self, technique: str, form: str = "{} masked") -> str:
        """That share, and of text that mixes languages that of the language that is masked least and most."""
        share = self.masked_fraction(technique)
        if share is None:
            return ""
        rows = (row for line in self.lines for row in line.by_technique[technique] if row["technique"] == technique)
        least, most = next((row.get("least_masked_language"), row.get("most_masked_language")) for row in rows)
        by_language = f"; {least:.1%} to {most:.1%} by language" if least is not None and most is not None else ""
        return form.format(f"{share:.1%}") + by_language

    def headings(self, first: str = "method") -> list[Heading]:
        """A heading for each technique, its name and the share of words that it masked, behind that of the labels."""
        of_techniques = (Heading(technique_name(name), self.masked_note(name)) for name in self.techniques)
        return [Heading(first), *of_techniques]


def tables(rows: Sequence[Row]) -> list[Table]:
    """The rows of the summary as one table per dataset, in the order in which they stand."""
    return [
        _table(dataset, [row for row in rows if row["dataset"] == dataset]) for dataset in _distinct(rows, "dataset")
    ]


def _table(dataset: str, rows: Sequence[Row]) -> Table:
    techniques = [technique for technique in _distinct(rows, "technique") if technique is not None]
    fillers = [filler for filler in _distinct(rows, "filler") if filler is not None]
    lines: list[Line] = []
    for filler, method in _in_order(rows, [None, *techniques]):
        mine = [row for row in rows if (row["filler"], row["method"]) == (filler, method)]
        by_technique = {
            technique: [_under(row, technique) for row in mine if row["technique"] in (technique, None)]
            for technique in techniques
        }
        label = cell_label(method, filler if len(fillers) > 1 else None)
        colour = _colour(method, [line.colour for line in lines])
        group = group_of(mine[0]["technique"], method, filler)
        lines.append(Line(method, filler, by_technique, label, colour, group))
    alone = next((line for line in lines if line.method == NO_LANGUAGE_MODEL), None)
    return Table(dataset, techniques, [line for line in lines if line is not alone], alone)


def _colour(method: str, used: Sequence[str]) -> str:
    """Its own, or where that is taken (another filler's line of the method) one of the further colours in turn."""
    if method in (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE):
        return "alone" if method == NO_LANGUAGE_MODEL else method
    own = f"c{method_colour(method)}"
    if method_colour(method) is not None and own not in used:
        return own
    further = [f"c{number}" for number in _FURTHER_COLOURS]
    return further[sum(colour in further for colour in used) % len(further)]


def _in_order(rows: Sequence[Row], techniques: Sequence[str | None]) -> list[tuple[str | None, str]]:
    """Fillers and methods in the order of the rows; one that only a later technique has stands where it has it."""
    found: list[tuple[str | None, str]] = []
    for technique in techniques:
        place = len(found)
        for name in dict.fromkeys((row["filler"], row["method"]) for row in rows if row["technique"] == technique):
            if name not in found:
                found.insert(place, name)
            place = found.index(name) + 1
    return found


def _under(row: Row, technique: str) -> Row:
    """A row as it stands under a technique: pretrained and Oracle have numbers of the words that each one masks."""
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
    """``445.1 [430, 460]``, ``445.1 ± 3.2`` over several seeds, a dash where there is none."""
    return str(number_entry(number, digits))


def number_entry(number: Estimate | None, digits: int = 1, *, sign: str = "", columns: int = 1) -> Entry:
    """A number and its interval, or its deviation over several seeds."""
    if number is None:
        return Entry(sign=sign, columns=columns)
    interval = ""
    if number.deviation is not None:
        interval = f"± {_value(number.deviation, digits)}"
    elif number.low is not None and number.high is not None:
        interval = f"[{_limit(number.low, digits)}, {_limit(number.high, digits)}]"
    return Entry(_value(number.value, digits), interval, sign, columns=columns)


def _value(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.{digits}f}"


def _limit(value: float, digits: int) -> str:
    """Limits of an interval need no more than three digits."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.0f}" if value >= 100 else f"{value:.{digits}f}"


def entry(measure: Measure, rows: Sequence[Row], view: str, columns: int = 1, best: bool = False) -> Entry:
    """The number of a condition as a view shows it: on the page with its comparisons, elsewhere with one mark."""
    number = measure.estimate(rows)
    sign = OTHER_PROTOCOL if measure.protocol and not follows_protocol(rows) else ""
    if number is None:
        return Entry(sign=sign, columns=columns)
    if measure.interval_over_seeds:
        number = replace(number, deviation=None)
    itself = measure.reference is not None and measure.reference.column == measure.name
    if not sign and view != PAGE and not itself:
        sign = measure.mark(rows)
    shown = number_entry(number, measure.digits, sign=sign, columns=columns)
    if view != PAGE:
        return shown
    if number.deviation is not None and over_seeds(rows, measure.name) is None:
        low, high = (f"{end:.{measure.digits}f}" for end in (number.low or 0.0, number.high or 0.0))
        shown = replace(shown, detail=f"{shown.interval}, {number.seeds} seeds: {low}–{high}")
    compared = [found for each in measure.references if (found := comparison(measure, each, rows)) is not None]
    most = "highest" if measure.better == "higher" else "lowest"
    return replace(shown, comparisons=tuple(compared), best=f"{most} of the fills" if best else "")


def comparison(measure: Measure, reference: Reference, rows: Sequence[Row]) -> Comparison | None:
    """How far the rows are from a reference; ``None`` where that is not known, or the measure is such a number."""
    distance = estimate(rows, reference.column)
    if distance is None or reference.column == measure.name:
        return None
    if not reference.neutral:
        text = f"{distance.value * (100 if measure.share else 1):+.1f}"
    else:
        text = f"{distance.value - 1:+.1%}" if distance.value < 3 else f"×{distance.value:.1f}"
    way = reference.way(rows)
    said = reference.said(way)
    return Comparison(reference.name, text.replace("-", "−"), SIGNS[way], said, judgement(measure, way))


def judgement(measure: Measure, way: int) -> str:
    """``good`` or ``bad``, by the side on which a number lies; ``alike`` on neither."""
    if not way or measure.better is None:
        return "alike"
    return "good" if (way < 0) == (measure.better == "lower") else "bad"


def best_fills(
    table: Table, measure: Measure, groups: Sequence[str] = ("fill", "control")
) -> dict[str, tuple[Line, float] | None]:
    """Of each technique the fill of these groups with the best number, among those that compare."""
    found: dict[str, tuple[Line, float] | None] = {}
    for technique in table.techniques:
        numbers = [
            (line, number.value)
            for line in table.lines
            if line.group in groups
            and not (measure.protocol and not follows_protocol(line.by_technique[technique]))
            and (number := measure.estimate(line.by_technique[technique])) is not None
        ]
        pick = max if measure.better == "higher" else min
        found[technique] = pick(numbers, key=lambda pair: pair[1], default=None) if measure.better else None
    return found


def measure_grid(
    table: Table,
    measure: Measure,
    view: str = DOCUMENT,
    caption: str = "",
    leaders: Mapping[str, tuple[str, str | None]] | None = None,
) -> Grid:
    """The table of one measure. On the page, references span all techniques, save of measures of which they have a
    number under each, and ``leaders``, method and filler by technique, are marked as the best."""
    best = leaders or {}
    rows = []
    for line in table.lines_of(measure):
        if view == PAGE and line.group == "reference" and not measure.by_technique:
            found = line.by_technique[table.techniques[0]]
            entries = [entry(measure, found, view, columns=len(table.techniques))]
        else:
            entries = [
                entry(measure, line.by_technique[name], view, best=best.get(name) == (line.method, line.filler))
                for name in table.techniques
            ]
        rows.append(_row(line, entries))
    heading = measure.heading or measure.title
    heading = f"{heading}, {table.kind_of_speech}" if measure.of_speech else heading
    return Grid(caption or heading, table.headings("Method" if view == PAGE else "method"), rows, "numbers", large=True)


def _row(line: Line, entries: Sequence[Entry]) -> GridRow:
    return GridRow(line.label, entries, line.group, line.colour, "control" if line.group == "control" else "")


def class_grids(table: Table, first: str = "method") -> list[tuple[str, Grid]]:
    """For each technique, perplexities by how frequent a word is in generic text: classes across, methods down. None
    where evaluation had no word counts."""
    return [(name, found) for name in table.techniques if (found := _class_grid(table, name, first)) is not None]


def _class_grid(table: Table, technique: str, first: str) -> Grid | None:
    classes: dict[str, int] = {}
    for line in table.lines:
        for row in line.by_technique[technique]:
            classes |= {name: measured["targets"] for name, measured in row.get("by_frequency", {}).items()}
    if not classes:
        return None
    rows = []
    for line in table.lines:
        found: list[Mapping[str, Any]] = [row.get("by_frequency", {}) for row in line.by_technique[technique]]
        numbers = [
            estimate([groups.get(name, {}) for groups in found], "perplexity") if found else None for name in classes
        ]
        rows.append(_row(line, [Entry(_value(number.value, 1) if number else ABSENT) for number in numbers]))
    # ``rank 101-1000`` as ``rank 101–1,000``.
    names = [re.sub(r"\d+", lambda found: f"{int(found.group()):,}", name).replace("-", "–") for name in classes]
    counts = map("{:,}".format, classes.values())
    headings = [Heading(first), *(Heading(*each) for each in zip(names, counts, strict=True))]
    title = f"Perplexity by frequency in generic text (targets), {technique_name(technique)}"
    return Grid(title, headings, rows, "numbers")
