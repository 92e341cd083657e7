"""``summary.json`` as others read it: rows with a cell each, whose numbers are numbers that can be."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.results.summary.speech_columns import COUNTS, SETTINGS

_CELL = tuple(Cell.__dataclass_fields__)
_REQUIRED = (*_CELL, "key", "perplexity", "perplexity_known", "signature")
_ALWAYS = ("dataset", "method", "key")
_WORDS = ("dataset", "technique", "method", "filler", "key", "signature", "command")
_DIFFERENCES = "wer_difference_to_"
_ABOVE_0 = ("perplexity", "ratio_to_", "bits_per_character")
"""Beginnings of columns, as with the three that follow."""
_FROM_0 = ("wer", "character_error_rate")
_SHARES = ("restoration_", "masked_fraction", "oov_rate", "best_first_share")
_NUMBERS = (*_ABOVE_0, *_FROM_0, *_SHARES, "gap_closed", *SETTINGS, "source_weight")
_COMPARED = (*_ABOVE_0, *_FROM_0, "gap_closed")
"""Columns whose intervals are read by themselves, so that an interval needs its number."""
_OF_SPEECH = ("utterances", "reference_words")
"""Columns that a row with a word error rate has."""
_OF_LISTS = ("wer_insertion_bonus_alone", "best_first_share")
"""Columns that a row with n-best lists has."""
_TABLES = {
    "masked_words": [
        f"{name}{end}" for name in ("perplexity", "perplexity_known", "perplexity_rest_known") for end in ("", "_ci")
    ],
    "masked_word_errors": [],
}
"""Columns with a record for each technique, and what each record has."""
_SHOWN = 5
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


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
    except (ValueError, RecursionError):
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
        yield from (f"row {number} ({_key(row)}): {problem}" for problem in _problems_of(row))
        if any(_not_what(name, row[name]) for name in _CELL):
            continue
        cell = summarised_cell(row)
        if cell in first:
            yield f"rows {first[cell]} and {number} are of the same cell ({_key(row)})"
        first.setdefault(cell, number)


def _key(row: Mapping[str, Any]) -> str:
    key = row["key"]
    return key if isinstance(key, str) and key.isprintable() else _SHORT.repr(key)


def _problems_of(row: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a row that has all columns of a cell."""
    yield from _not_numbers(row)
    for given, needed in (("wer", _OF_SPEECH), ("wer_best_of_lists", _OF_LISTS)):
        if row.get(given) is not None:
            yield from (f"{name!r} is missing beside {given!r}" for name in needed if row.get(name) is None)
    together = row.get("over_seeds")
    if isinstance(together, dict):
        yield from _not_numbers(together, "over_seeds.")
        seeds = together.get("seeds")
        if not isinstance(seeds, list) or any(_not_what("seed", seed) for seed in seeds):
            yield f"'over_seeds.seeds' is {_SHORT.repr(seeds)}, not a list of seeds"
    elif together is not None:
        yield f"'over_seeds' is {_SHORT.repr(together)}, not a record"
    for column, fields in _TABLES.items():
        table = row.get(column, {})
        if not isinstance(table, dict) or not all(isinstance(record, dict) for record in table.values()):
            yield f"{column!r} is {_SHORT.repr(table)}, not a record for each technique"
            continue
        for technique, record in table.items():
            place = f"{column}.{technique}."
            yield from (f"{place + name!r} is missing" for name in fields if name not in record)
            yield from _not_numbers(record, place)


def _not_numbers(record: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Columns that hold something else than they should, and intervals without their number."""
    for name, value in record.items():
        if (wanted := _not_what(name, value)) is not None:
            yield f"{place + name!r} is {_SHORT.repr(value)}, not {wanted}"
        number = name.removesuffix("_ci")
        if number != name and name.startswith(_COMPARED) and value is not None and record.get(number) is None:
            yield f"{place + number!r} is missing beside {place + name!r}"


def _not_what(name: str, value: Any) -> str | None:
    """What a column should hold, where it does not; ``None`` where it does, and of columns that nothing is known of."""
    if name in _WORDS:
        fits = isinstance(value, str) or (value is None and name not in _ALWAYS)
        return None if fits else "a text"
    if name == "seed":
        return None if value is None or _is_whole(value) else "a whole number"
    if value is None:
        return None
    if name in COUNTS:
        return None if _is_whole(value) and value >= 0 else "a count"
    if not name.startswith(_NUMBERS):
        return None
    if name.endswith("_ci"):
        if not (isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))):
            return "an interval"
        if value[0] > value[1]:
            return "an interval from its lower to its upper end"
        beyond = next((wanted for end in value if (wanted := _beyond(name.removesuffix("_ci"), end))), None)
        return beyond and f"an interval {beyond}"
    return _beyond(name, value) if _is_number(value) else "a number"


def _beyond(name: str, value: float) -> str | None:
    """Where a number of a column should lie, if it does not."""
    if name.startswith(_DIFFERENCES):
        return None
    if name.startswith(_FROM_0) or name.endswith("_deviation"):
        return None if value >= 0 else "at least 0"
    if name.startswith(_ABOVE_0):
        return None if value > 0 else "above 0"
    if name.startswith(_SHARES):
        return None if 0 <= value <= 1 else "between 0 and 1"
    return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
