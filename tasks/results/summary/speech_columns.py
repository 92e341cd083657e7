"""Columns of the summary about speech: word error rates of the recogniser with a cell's language model.

All of them are null for data sets without speech. Rates are shares (0.144 is 14.4 %).
"""

from collections.abc import Callable, Sequence
from typing import Any

from tasks.records.cell import Cell

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
OF_LISTS = (
    "source_weight",
    "wer_insertion_bonus_alone",
    "wer_insertion_bonus_alone_ci",
    "wer_difference_to_insertion_bonus_alone",
    "wer_difference_to_insertion_bonus_alone_ci",
    "wer_best_of_lists",
    "best_first_share",
)
"""Columns of data sets with n-best lists, null for all others: what can be won by choosing among the lists."""
SPEECH_COLUMNS = (
    *(name + end for name in RATES for end in ("", "_ci")), *COUNTS, *SETTINGS, "synthetic_speech", *OF_LISTS
)  # fmt: skip


def speech_columns(cell: Cell, measured: Callable[[str], Any], *, rescored: bool) -> dict[str, Any]:
    """The columns of one cell; ``measured`` reads a field of its report.

    ``rescored``: its rates come from another recogniser's n-best lists, which are taken for recorded speech.
    """
    masked = measured("masked_words") or {}
    columns: dict[str, Any] = {
        "wer": measured("wer"),
        "wer_ci": measured("wer_ci"),
        "character_error_rate": measured("character_error_rate"),
        "character_error_rate_ci": measured("character_error_rate_ci"),
        "masked_word_errors": masked,
        **masked_word_error_columns(masked, cell.technique),
        "synthetic_speech": False if rescored else measured("synthetic_speech"),
    }
    columns |= {name: measured(field) for name, field in COUNTS.items()}
    columns |= {name: measured(name) for name in SETTINGS}
    return columns | (_of_lists(measured) if rescored else dict.fromkeys(OF_LISTS))


def _of_lists(measured: Callable[[str], Any]) -> dict[str, Any]:
    bonus = measured("insertion_bonus_alone") or {}
    difference = "difference_to_insertion_bonus_alone"
    return {
        "source_weight": measured("source_weight"),
        "wer_insertion_bonus_alone": bonus.get("wer"),
        "wer_insertion_bonus_alone_ci": bonus.get("wer_ci"),
        f"wer_{difference}": measured(difference),
        f"wer_{difference}_ci": measured(f"{difference}_ci"),
        "wer_best_of_lists": measured("oracle_wer"),
        "best_first_share": measured("best_first_share"),
    }


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
