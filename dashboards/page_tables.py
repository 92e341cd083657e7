"""The page's tables of several measures: leakage, fills, speech, and made-up examples."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup

from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.records.cells import word_error_report
from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading, plain_grid, words
from tasks.results.leakage import attacked
from tasks.results.measure import ABOVE, PAGE, Measure, Row
from tasks.results.measures import leakage, measure, measures
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tables import Table, number_entry
from tasks.results.titles import cell_label, technique_name
from tasks.results.verdict import Verdict

Piece = tuple[str, bool]
"""A piece of a sentence, and whether masking or filling wrote it."""


def readings_grid(verdict: Verdict) -> Grid:
    """The leakage of the recommended cell."""
    return plain_grid(
        f"Leakage of {verdict.cell.path}",
        ["Attack", "Result", "Chance level", Heading("Reading", words=True)],
        [(each.attack, each.result, each.chance, each.reading) for each in verdict.leakage],
        kind="plain readings",
        caption_unseen=True,
    )


def leakage_grid(table: Table) -> Grid:
    """Attacks as rows, attacked conditions as columns, each number with its chance level.

    Without an attack: the identifiers that each technique leaves unmasked.
    """
    conditions = [
        (Heading(line.label, technique_name(technique or "")), rows) for technique, line, rows in attacked(table)
    ]
    if not conditions:
        filled = [(name, line.by_technique[name]) for name in table.techniques for line in table.lines]
        first = {name: rows for name, rows in reversed(filled) if rows and rows[0]["technique"]}
        conditions = [(Heading(technique_name(name)), first[name]) for name in table.techniques if name in first]
    found = {each.title: [_with_chance(each, rows) for _, rows in conditions] for each in leakage(PAGE)}
    rows = [GridRow(title, entries) for title, entries in found.items() if any(e.text != ABSENT for e in entries)]
    headings = [Heading("Attack"), *(heading for heading, _ in conditions)]
    return Grid(f"Leakage of {table.dataset}", headings, rows, caption_unseen=True)


def _with_chance(measure: Measure, rows: Sequence[Row]) -> Entry:
    number, blind = measure.estimate(rows), measure.chance(rows)
    shown = number_entry(number, measure.digits)
    if number is None or blind is None:
        return shown
    chance = blind.value
    interval = shown.interval.strip("[]").replace(", ", "–")
    detail = f"{interval}{', ' if interval else ''}chance {chance:.{measure.digits}f}"
    if number.low is None or number.low <= chance:
        return replace(shown, detail=detail)
    return replace(shown, detail=detail, sign=ABOVE, said="above chance", sign_kind="bad")


def fluency_grid(table: Table) -> Grid:
    """The fluency of each fill, with intervals; empty if it was not measured."""
    shown = [each for each in measures() if each.step == "fluency" and not each.name.endswith("_before")]
    rows = []
    for technique in table.techniques:
        for line in table.lines:
            found = [each.estimate(line.by_technique[technique]) for each in shown]
            if any(found):
                entries = [number_entry(number, each.digits) for number, each in zip(found, shown, strict=True)]
                rows.append(GridRow(f"{line.label}, {technique_name(technique)}", entries))
    return Grid(
        "How well fills read", [Heading("Fill"), *(Heading(each.title) for each in shown)], rows, caption_unseen=True
    )


def fill_grid(table: Table) -> Grid:
    """Return, per fill: markers, distinct fills, fills against the rule, masked words matched by coincidence."""
    columns = {
        "markers": "Mask tokens",
        "distinct_fills": "Distinct fills",
        "fallback_count": "Against the off-list rule",
        "restoration_rate": "Exact matches, %",
        "restoration_by_frequency": "Exact matches by frequency, %",
    }
    rows = []
    for technique in table.techniques:
        for line in table.lines:
            found = [measure(name).estimate(line.by_technique[technique]) for name in columns]
            if line.group in ("fill", "control") and found[0] is not None:
                texts = [
                    ABSENT if number is None else format(number.value, ".2f" if measure(name).share else ",.0f")
                    for name, number in zip(columns, found, strict=True)
                ]
                rows.append([f"{line.label}, {technique_name(technique)}", *texts])
    return plain_grid("Fills in numbers", ["Fill", *columns.values()], rows)


def systems_grid(table: Table, index: ReportIndex) -> Grid:
    """Every system of speech once, with errors by kind, weights and speed."""
    columns = ("insertions", "deletions", "substitutions", "character_error_rate", "lm_weight", "insertion_bonus")
    rows = []
    for line in table.all_lines:
        for place, technique in enumerate(table.techniques):
            found = line.by_technique[technique]
            if not found or found[0].get("wer") is None or (place and found[0]["technique"] is None):
                continue
            numbers = [(measure(name), measure(name).estimate(found)) for name in columns]
            texts = [ABSENT if number is None else f"{number.value:,.{each.digits}f}" for each, number in numbers]
            names = [word_error_report(summarised_cell(row)).with_suffix("").as_posix() for row in found]
            measured = [index.reports[name]["measured"] for name in names if name in index.reports]
            factors = [each["real_time_factor"] for each in measured if each.get("real_time_factor") is not None]
            texts.append(f"{sum(factors) / len(factors):.3f}" if factors else ABSENT)
            label = line.label + (f", {technique_name(technique)}" if found[0]["technique"] else "")
            rows.append([label, *texts])
    headings = ("Insertions", "Deletions", "Substitutions", "Character errors, %", "Weight", "Insertion bonus")
    caption = f"Errors by kind, weights, and seconds of search per second of {table.kind_of_speech}"
    return plain_grid(caption, ["Language model", *headings, "Real-time factor"], rows)


def examples_of(dataset: str, index: ReportIndex) -> dict[str, list[Grid]]:
    """The made-up sentences by technique: a table for every sentence, raw, masked, and filled by every method.

    Fills of all fillers are in one column, controls last. Empty without examples.
    """
    reports = [each for each in index.reports.values() if each["stage"] == "examples"]
    reports = [each for each in reports if each["cell"]["dataset"] == dataset]
    # Fillers of all techniques before those that are tuned on the text of one.
    reports.sort(key=lambda report: report["cell"]["technique"] is not None)
    raw: dict[str, list[str]] = {}
    entries: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        for entry in report["measured"]["by_technique"]:
            raw.setdefault(entry["technique"], report["measured"]["raw"])
            entries.setdefault(entry["technique"], []).append(entry)
    return {
        technique: [
            _sentence(place, text, technique_name(technique), entries[technique], several=len(reports) > 1)
            for place, text in enumerate(texts)
        ]
        for technique, texts in raw.items()
    }


def _sentence(place: int, raw: str, technique: str, entries: Sequence[Mapping[str, Any]], *, several: bool) -> Grid:
    """One sentence, raw, masked and filled; a control is the same for every filler, and has one row."""
    forms: dict[str, list[Piece]] = {"raw": [(raw, False)], "masked": _markers(entries[0]["masked"][place])}
    controls: dict[str, list[Piece]] = {}
    for entry in entries:
        for fill in entry["filled"]:
            pieces = filled_pieces(entry["masked"][place], fill["lines"][place])
            kind = controls if fill["filler"] is None else forms
            kind.setdefault(cell_label(fill["method"], fill["filler"] if several else None), pieces)
    rows = [(label, _marked(pieces)) for label, pieces in {**forms, **controls}.items()]
    return plain_grid(f"Sentence {place + 1}, {technique}", ["", *words("")], rows, kind="plain text examples")


def _marked(pieces: Sequence[Piece]) -> Markup:
    return Markup("").join(Markup("<mark>{}</mark>").format(text) if marked else text for text, marked in pieces)


def _markers(line: str) -> list[Piece]:
    pieces: list[Piece] = []
    position = 0
    for match in MARKER_PATTERN.finditer(line):
        pieces += [(line[position : match.start()], False), (match.group(), True)]
        position = match.end()
    return [piece for piece in [*pieces, (line[position:], False)] if piece[0]]


def filled_pieces(masked: str, filled: str) -> list[Piece]:
    """A filled line, with the words that replace mask tokens marked."""
    before, after = (re.findall(r"\[\w+(?::\w+)?\]|\w+|\W", line) for line in (masked, filled))
    pieces: list[Piece] = []
    for kind, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if text := "".join(after[start:end]):
            pieces.append((text, kind != "equal"))
    return pieces
