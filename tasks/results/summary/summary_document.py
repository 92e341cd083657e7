"""The tables of the summary as a Markdown document."""

from collections.abc import Sequence
from dataclasses import replace

from tasks.results.summary.estimate import Estimate
from tasks.results.summary.frequency_table import class_tables
from tasks.results.summary.summary_table import (
    ABSENT,
    SECTIONS,
    Row,
    Table,
    headings,
    notes,
    number_text,
    tables,
    technique_name,
)

SHOWN_TABLES = 2
"""Tables of each data set that a terminal shows: perplexity over all words, and over known ones."""


def markdown(rows: Sequence[Row]) -> str:
    """The tables of all datasets as a Markdown document."""
    parts = ["# Results"]
    for table in tables(rows):
        parts.append(f"## {table.dataset}")
        for section in SECTIONS:
            cells = section.texts(table)
            if any(text.strip(f"{ABSENT} ") for row in cells for text in row):
                labels = [line.label for line in section.lines(table)]
                parts += [f"### {section.heading(table)}", _grid(headings(table), labels, cells)]
        for classes in class_tables(table):
            classes_across = [f"{name} ({targets:,})" for name, targets in classes.headings]
            cells = [[_short(number) for number in numbers] for _, numbers in classes.lines]
            title = f"Perplexity by frequency in generic text (targets), {technique_name(classes.technique)}"
            parts += [f"### {title}", _grid(classes_across, [line.label for line, _ in classes.lines], cells)]
        parts.append(notes(table))
        parts.append("\n".join(f"`{signature}`" for signature in _signatures(table)))
    return "\n\n".join(parts) + "\n"


def main_tables(document: str) -> list[str]:
    """The lines of a Markdown document with the first tables of each data set, and what stands beside tables."""
    kept: list[str] = []
    sections = 0
    for line in document.splitlines():
        if line.startswith("## "):
            sections = 0
        if line.startswith("### "):
            sections += 1
        beyond = sections > SHOWN_TABLES
        # Of two empty lines that a table leaves behind, one is enough.
        if (beyond and line.startswith(("### ", "|"))) or (not line and kept and not kept[-1]):
            continue
        kept.append(line)
    return kept


def _grid(headings: Sequence[str], labels: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [f"| method | {' | '.join(headings)} |", f"|---{'|---:' * len(headings)}|"]
    return "\n".join([*lines, *(f"| {label} | {' | '.join(row)} |" for label, row in zip(labels, cells, strict=True))])


def _short(number: Estimate | None) -> str:
    """The number alone: a table of classes is wide."""
    return number_text(number and replace(number, deviation=None, low=None, high=None))


def _signatures(table: Table) -> list[str]:
    return list(dict.fromkeys(row["signature"] for row in table.rows))
