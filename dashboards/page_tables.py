"""The page's tables of several measures: fills, speech, and made-up examples."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup, escape

from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.results.grid import ABSENT, Grid, GridRow, Heading, plain_grid, words
from tasks.results.measures import measure, measures
from tasks.results.report_index import ReportIndex
from tasks.results.tables import Table, TechniqueLine, number_entry
from tasks.results.titles import cell_label, technique_name
from tasks.results.verdict import Verdict


def readings_grid(verdict: Verdict) -> Grid:
    """The leakage of the recommended cell."""
    return plain_grid(
        f"Leakage of {verdict.cell.path}",
        ["Attack", "Result", "Chance level", Heading("Reading", words=True)],
        [(each.attack, each.result, each.chance, each.reading) for each in verdict.leakage],
        kind="plain readings",
        caption_unseen=True,
    )


def fluency_grid(table: Table) -> Grid:
    """The fluency of each fill, with intervals; empty if it was not measured."""
    shown = [each for each in measures() if each.step == "fluency" and not each.name.endswith("_before")]
    rows = []
    for one in table.conditions():
        found = [each.estimate(one.rows) for each in shown]
        if any(found):
            entries = [number_entry(number, each.digits) for number, each in zip(found, shown, strict=True)]
            rows.append(GridRow(one.label, entries))
    headings = [Heading("Fill"), *(Heading(each.title) for each in shown)]
    return Grid("How well fills read", headings, rows, caption_unseen=True)


def fill_grid(table: Table) -> Grid:
    """Return, per fill: markers, distinct fills, fills against the rule, masked words matched by coincidence."""
    columns = {
        "markers": "Mask tokens",
        "distinct_fills": "Distinct fills",
        "fallback_count": "Against the off-list rule",
        "restoration_rate": "Exact matches, %",
        "restoration_by_frequency": "Exact matches by frequency, %",
    }
    fills = [one for one in table.conditions() if one.line.group in ("fill", "control")]
    return _numbers_grid("Fills in numbers", "Fill", columns, fills)


def systems_grid(table: Table) -> Grid:
    """Every system of speech once, with errors by kind and weights."""
    columns = {
        "insertions": "Insertions",
        "deletions": "Deletions",
        "substitutions": "Substitutions",
        "character_error_rate": "Character errors, %",
        "lm_weight": "Weight",
        "insertion_bonus": "Insertion bonus",
    }
    systems = table.conditions(alone=True, by_line=True)
    return _numbers_grid(f"Errors by kind, and weights, {table.kind_of_speech}", "Language model", columns, systems)


def _numbers_grid(caption: str, first: str, columns: Mapping[str, str], conditions: Iterable[TechniqueLine]) -> Grid:
    """The numbers of measures without intervals, a row for each condition that has the first of them."""
    rows = []
    for one in conditions:
        found = [(measure(name).estimate(one.rows), measure(name).digits) for name in columns]
        if found[0][0] is not None:
            shown = (ABSENT if number is None else f"{number.value:,.{digits}f}" for number, digits in found)
            rows.append([one.label, *shown])
    return plain_grid(caption, [first, *columns.values()], rows)


def examples_of(dataset: str, index: ReportIndex) -> dict[str, list[Grid]]:
    """The made-up sentences by technique: a table for every sentence, raw, masked, and filled by every method.

    Fills of all fillers are in one column, controls last. Empty without examples.
    """
    reports = [each for each in index.reports.values() if each["stage"] == "examples"]
    reports = [each for each in reports if each["cell"]["dataset"] == dataset]
    # Fillers of all techniques before those that are tuned on the text of one.
    reports.sort(key=lambda report: report["cell"]["technique"] is not None)
    found: dict[str, list[Grid]] = {}
    for report in reports:
        for technique in (entry["technique"] for entry in report["measured"]["by_technique"]):
            if technique not in found:
                found[technique] = [
                    _sentence(place, raw, technique, reports) for place, raw in enumerate(report["measured"]["raw"])
                ]
    return found


def _sentence(place: int, raw: str, technique: str, reports: Sequence[Mapping[str, Any]]) -> Grid:
    """One sentence, raw, masked and filled; a control is the same for every filler, and has one row."""
    forms: dict[str, str] = {"raw": raw}
    controls: dict[str, str] = {}
    for entry in (each for report in reports for each in report["measured"]["by_technique"]):
        if entry["technique"] == technique:
            masked = entry["masked"][place]
            forms.setdefault("masked", Markup(MARKER_PATTERN.sub(r"<mark>\g<0></mark>", str(escape(masked)))))
            for fill in entry["filled"]:
                label = cell_label(fill["method"], fill["filler"] if len(reports) > 1 else None)
                kind = controls if fill["filler"] is None else forms
                kind.setdefault(label, _filled(masked, fill["lines"][place]))
    title = f"Sentence {place + 1}, {technique_name(technique)}"
    return plain_grid(title, ["", *words("")], list({**forms, **controls}.items()), kind="plain text examples")


def _filled(masked: str, filled: str) -> Markup:
    """A filled line, with the words that replace mask tokens marked."""
    before, after = (re.findall(r"\[\w+(?::\w+)?\]|\w+|\W", line) for line in (masked, filled))
    pieces = []
    for kind, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        text = "".join(after[start:end])
        pieces.append(Markup("<mark>{}</mark>").format(text) if text and kind != "equal" else escape(text))
    return Markup("").join(pieces)
