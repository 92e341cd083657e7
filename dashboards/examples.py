"""Examples for the page: made-up sentences as they were masked and filled, with what was changed marked."""

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from markupsafe import Markup

from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.results.grid import Entry, Grid, GridRow, Heading
from tasks.results.report_index import ReportIndex
from tasks.results.titles import method_name, technique_name

STAGE = "examples"
Piece = tuple[str, bool]
"""A piece of a sentence, and whether masking or filling wrote it."""


def examples_of(dataset: str, index: ReportIndex) -> list[tuple[str, list[Grid]]]:
    """The examples of a dataset by technique: a table for every sentence, raw, masked, and filled by every method.

    Fills of all fillers stand below each other, controls last. Empty where none were made.
    """
    reports = [
        report for report in index.reports.values() if report["stage"] == STAGE and report["cell"]["dataset"] == dataset
    ]
    # Fillers of all techniques before those that are tuned on the text of one.
    reports.sort(key=lambda report: report["cell"]["technique"] is not None)
    raw: dict[str, list[str]] = {}
    entries: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        for entry in report["measured"]["by_technique"]:
            raw.setdefault(entry["technique"], report["measured"]["raw"])
            entries.setdefault(entry["technique"], []).append(entry)
    return [
        (
            technique_name(technique),
            [
                _sentence(place, text, technique_name(technique), entries[technique], several=len(reports) > 1)
                for place, text in enumerate(texts)
            ],
        )
        for technique, texts in raw.items()
    ]


def _sentence(place: int, raw: str, technique: str, entries: Sequence[Mapping[str, Any]], *, several: bool) -> Grid:
    """One sentence on its way; a control is the same beside every filler, and stands there once."""
    forms: dict[str, list[Piece]] = {"raw": [(raw, False)], "masked": _markers(entries[0]["masked"][place])}
    controls: dict[str, list[Piece]] = {}
    for entry in entries:
        for fill in entry["filled"]:
            filler = f", {fill['filler']}" if several and fill["filler"] else ""
            pieces = filled_pieces(entry["masked"][place], fill["lines"][place])
            kind = controls if fill["filler"] is None else forms
            kind.setdefault(f"{method_name(fill['method'])}{filler}", pieces)
    rows = [GridRow(label, [Entry(_marked(pieces))]) for label, pieces in {**forms, **controls}.items()]
    return Grid(
        f"Sentence {place + 1} raw, masked by {technique}, and filled by each method",
        [Heading(""), Heading("", words=True)],
        rows,
        "plain examples",
        f"Example {place + 1}, {technique}",
        caption_unseen=True,
    )


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
    """A filled line with the words that stand in the place of markers marked."""
    before, after = (re.findall(r"\[\w+\]|\w+|\W", line) for line in (masked, filled))
    pieces: list[Piece] = []
    for kind, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if text := "".join(after[start:end]):
            pieces.append((text, kind != "equal"))
    return pieces
