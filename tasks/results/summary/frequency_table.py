"""Perplexities by how frequent a word is in generic text, as a table for each technique."""

from dataclasses import dataclass

from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.summary.summary_table import Line, Table


@dataclass(frozen=True)
class ClassTable:
    """Perplexities by class of frequency: methods down, classes across."""

    technique: str
    headings: list[tuple[str, int]]
    """Class and how many targets of the test text it has."""
    lines: list[tuple[Line, list[Estimate | None]]]


def class_tables(table: Table) -> list[ClassTable]:
    """One for each technique; none where evaluation had no word counts."""
    return [found for technique in table.techniques if (found := _class_table(table, technique)).headings]


def _class_table(table: Table, technique: str) -> ClassTable:
    classes: dict[str, int] = {}
    for line in table.lines:
        for row in line.by_technique[technique]:
            classes |= {name: measured["targets"] for name, measured in row.get("by_frequency", {}).items()}
    lines = []
    for line in table.lines:
        found = [row.get("by_frequency", {}) for row in line.by_technique[technique]]
        numbers = [
            estimate([groups[name] for groups in found], "perplexity") if all(name in g for g in found) else None
            for name in classes
        ]
        lines.append((line, numbers))
    return ClassTable(technique, list(classes.items()), lines)
