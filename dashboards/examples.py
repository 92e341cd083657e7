"""Examples for the page: made-up sentences as they were masked and filled, with what was changed marked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_table import method_name, technique_name

STAGE = "examples"
Piece = tuple[str, bool]
"""A piece of a sentence, and whether masking or filling wrote it."""


@dataclass(frozen=True)
class ExampleLine:
    """One form of a sentence."""

    label: str
    """``raw``, ``masked``, or the method that filled it."""
    pieces: list[Piece]
    control: bool = False
    """Whether it was filled without a filler."""


@dataclass(frozen=True)
class TechniqueExamples:
    """Every sentence on its way through one technique."""

    technique: str
    sentences: list[list[ExampleLine]]
    """Raw, masked, and filled by every method."""


def examples_of(dataset: str, index: ReportIndex) -> list[TechniqueExamples]:
    """The examples of a dataset by technique; fills of all fillers below each other, controls last.

    Empty where none were made.
    """
    reports = [
        report for report in index.reports.values() if report["stage"] == STAGE and report["cell"]["dataset"] == dataset
    ]
    # Fillers of all techniques before those that are tuned on the text of one.
    reports.sort(key=lambda report: report["cell"]["technique"] is not None)
    found: dict[str, list[list[ExampleLine]]] = {}
    for report in reports:
        for entry in report["measured"]["by_technique"]:
            name = technique_name(entry["technique"])
            if name not in found:
                found[name] = _begun(report["measured"]["raw"], entry["masked"])
            for place, lines in enumerate(found[name]):
                lines += _fills(entry, place, several=len(reports) > 1, known={line.label for line in lines})
    for sentences in found.values():
        for lines in sentences:
            lines.sort(key=lambda line: line.control)
    return [TechniqueExamples(name, sentences) for name, sentences in found.items()]


def _begun(raw: list[str], masked: list[str]) -> list[list[ExampleLine]]:
    return [
        [ExampleLine("raw", [(text, False)]), ExampleLine("masked", _markers(line))]
        for text, line in zip(raw, masked, strict=True)
    ]


def _fills(entry: Mapping[str, Any], place: int, *, several: bool, known: set[str]) -> list[ExampleLine]:
    """The fills of one sentence; a control is the same beside every filler, and stands there once."""
    lines = []
    for fill in entry["filled"]:
        filler = f", {fill['filler']}" if several and fill["filler"] else ""
        label = f"{method_name(fill['method'])}{filler}"
        if label not in known:
            pieces = filled_pieces(entry["masked"][place], fill["lines"][place])
            lines.append(ExampleLine(label, pieces, control=fill["filler"] is None))
    return lines


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
