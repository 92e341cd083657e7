"""Columns of the summary about speech: word error rates of the recogniser with a cell's language model.

All of them are null for data sets without speech. Rates are shares (0.144 is 14.4 %).
"""

from collections.abc import Callable, Sequence
from typing import Any

from tasks.params import CompareSettings
from tasks.reports.cell import Cell

RATES = ("wer", "wer_masked", "character_error_rate")
"""Columns with an interval beside them."""
COUNTS = {
    "insertions": "insertions",
    "deletions": "deletions",
    "substitutions": "substitutions",
    "utterances": "utterances",
    "reference_words": "words",
}
"""Columns that are counts, and the measured fields that they come from."""
SETTINGS = ("lm_weight", "insertion_bonus")
"""What was chosen on dev."""
SPEECH_COLUMNS = (*(name + end for name in RATES for end in ("", "_ci")), *COUNTS, *SETTINGS, "synthetic_speech")


def has_speech(cell: Cell, compare: CompareSettings) -> bool:
    """Whether the cell's data set has speech to be recognised."""
    return cell.dataset in compare.speech_datasets


def speech_columns(cell: Cell, measured: Callable[[str, str], Any]) -> dict[str, Any]:
    """The columns of one cell; ``measured`` reads a field of its report and refuses another kind than named."""
    masked = measured("masked_words", "table?") or {}
    columns: dict[str, Any] = {
        "wer": measured("wer", "number"),
        "wer_ci": measured("wer_ci", "interval?"),
        "character_error_rate": measured("character_error_rate", "number"),
        "character_error_rate_ci": measured("character_error_rate_ci", "interval?"),
        "masked_word_errors": masked,
        **masked_word_error_columns(masked, cell.technique),
        "synthetic_speech": measured("synthetic_speech", "yes or no"),
    }
    columns |= {name: measured(field, "count") for name, field in COUNTS.items()}
    return columns | {name: measured(name, "number?") for name in SETTINGS}


def masked_word_error_columns(masked: Any, technique: str | None) -> dict[str, Any]:
    """The word error rate on the words that a technique masks; null where they are not told apart."""
    found = masked.get(technique or "") or {}
    return {"wer_masked": found.get("wer"), "wer_masked_ci": found.get("wer_ci")}


def no_speech_columns() -> dict[str, Any]:
    """The same columns for a cell without speech."""
    return {**dict.fromkeys(SPEECH_COLUMNS), "masked_word_errors": {}}


def is_synthetic(rows: Sequence[Any]) -> bool:
    """Whether the word error rates of rows are of synthetic speech."""
    return any(row.get("synthetic_speech") for row in rows)
