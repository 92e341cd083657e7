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
_REQUIRED = {*_CELL, "filler_base", "key", "perplexity", "perplexity_known", "signature"}


def read_summary(path: str | Path) -> list[dict[str, Any]]:
    """The rows of ``summary.json``; ``CorpusError`` if it is missing or its rows are of another version."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"summary {str(path)!r} does not exist; run 'palimpsest run' first") from None
    except (OSError, ValueError):
        rows = None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and {*row} >= _REQUIRED for row in rows):
        raise CorpusError(
            f"summary {str(path)!r} has no rows with the columns of this version; run 'palimpsest summarise' again"
        )
    return rows


def summarised_cell(row: Mapping[str, Any]) -> Cell:
    """The cell of a row of the summary."""
    return Cell(**{name: row[name] for name in _CELL})
