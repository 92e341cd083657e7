"""Reads ``summary.json``, with one row for each cell."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell

SUMMARY_FILE = "results/summary.json"
"""Path of the rows of an experiment."""
_CELL = tuple(Cell.__dataclass_fields__)


def read_summary(path: str | Path) -> list[dict[str, Any]]:
    """The rows of ``summary.json``; ``CorpusError`` if it is missing."""
    try:
        rows: list[dict[str, Any]] = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"summary {str(path)!r} does not exist; run 'palimpsest summarise' first") from None
    return rows


def summarised_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of a row of the summary."""
    return Cell(**{name: row[name] for name in _CELL})
