"""``summary.json`` as others read it: rows with a cell each, whose numbers are numbers."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.reports.cell import Cell

_CELL = tuple(Cell.__dataclass_fields__)
_REQUIRED = (*_CELL, "key", "perplexity", "perplexity_known", "signature")
_ALWAYS = ("dataset", "method", "key")
_RATES = ("perplexity", "ratio_to_", "bits_per_character")
"""Columns that begin so are above 0."""
_NUMBERS = (*_RATES, "gap_closed", "wer", "restoration_", "masked_fraction", "oov_rate", "character_error_rate")
_WORDS = ("dataset", "technique", "method", "filler", "key", "signature", "command")
_SHOWN = 5


def read_summary(path: str | Path) -> list[dict[str, Any]]:
    """The rows of ``summary.json``.

    Raises ``CorpusError`` where it is missing, is no list of rows, has a cell twice, or holds something else than what
    'palimpsest summarise' writes; the error names row, column and value.
    """
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"summary {str(path)!r} does not exist; run 'palimpsest summarise' first") from None
    except IsADirectoryError:
        raise CorpusError(f"summary {str(path)!r} is a folder; give the file, such as its summary.json") from None
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise CorpusError(f"summary {str(path)!r} is no list of rows; run 'palimpsest summarise' again")
    problems = list(_problems(rows))
    if problems:
        more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise CorpusError(
            f"summary {str(path)!r}: {'; '.join(problems[:_SHOWN])}{more}; run 'palimpsest summarise' again"
        )
    return rows


def summarised_cell(row: Mapping[str, Any]) -> Cell:
    """The cell that a row of the summary belongs to."""
    return Cell(**{name: row[name] for name in _CELL})


def _problems(rows: list[dict[str, Any]]) -> Iterator[str]:
    first: dict[Cell, int] = {}
    for number, row in enumerate(rows, start=1):
        missing = [name for name in _REQUIRED if name not in row]
        if missing:
            yield f"row {number} has no {', '.join(map(repr, missing))}"
            continue
        wrong = [
            f"row {number} ({row['key']}): {name!r} is {value!r}, not {wanted}"
            for name, value in row.items()
            if (wanted := _not_what(name, value)) is not None
        ]
        yield from wrong
        if any(_not_what(name, row[name]) for name in _CELL):
            continue
        cell = summarised_cell(row)
        if cell in first:
            yield f"rows {first[cell]} and {number} are of the same cell ({row['key']})"
        first.setdefault(cell, number)


def _not_what(name: str, value: Any) -> str | None:
    """What a column should hold, where it does not; ``None`` where it does, and of columns that nothing is known of."""
    if name in _WORDS:
        fits = isinstance(value, str) or (value is None and name not in _ALWAYS)
        return None if fits else "a text"
    if name == "seed":
        return None if value is None or (isinstance(value, int) and not isinstance(value, bool)) else "a whole number"
    if value is None or not name.startswith(_NUMBERS):
        return None
    if name.endswith("_ci"):
        fits = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
        return None if fits else "an interval"
    if not _is_number(value):
        return "a number"
    return "above 0" if name.startswith(_RATES) and value <= 0 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
