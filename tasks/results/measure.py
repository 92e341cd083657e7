"""A measure: the name of a cell's number, its reference, and the views that show it.

``tasks.results.measures`` has the table of all measures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.results.summary.estimate import Estimate, estimate

DOCUMENT, PAGE = "document", "page"
"""Views with a table of the measure: ``summary.md``, the report page."""
MLFLOW = "mlflow"
"""A metric of every run."""
MASKED_WORDS = "masked_words.{technique}."
"""Path of the numbers for words that the cell's technique masks."""
BELOW, ABOVE, OTHER_PROTOCOL = "▼", "▲", "‡"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of a measure's marks: a column of the summary that has an interval."""

    column: str
    """Name of the column: a ratio or a difference, such as ``ratio_to_baseline1``."""
    name: str
    neutral: float = 1.0
    """Value of the column without a difference: 1 of a ratio, 0 of a difference."""
    sides: tuple[str, str] = ("below", "above")
    """Meaning of ``▼`` and ``▲``."""


def at_path(record: object, path: Sequence[str]) -> Any:  # noqa: ANN401 - a value of a JSON document
    """The value at the end of a path of fields; ``None`` if a record on the way lacks the field."""
    for name in path:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of a cell: a column of ``summary.json``, and its name in MLflow."""

    name: str
    title: str = ""
    """Title for people, with the shown unit."""
    heading: str = ""
    """Caption of a table of its own; the title if empty."""
    step: str
    """Report with the number: one of ``STEPS``, ``fluency`` (a record for each fill of a corpus), ``conclusion`` (a
    record for each text), ``unmasked`` (a record for each technique), ``word_error_rate``, ``rescore`` (the same by
    n-best lists only) or ``audit``, which need not have it. ``compared``: the summary computes it from the scores of
    two cells."""
    field: str = ""
    """Field under ``measured``; the name if empty. Dots lead into records. ``masked_words`` has a record for each
    technique, and ``{technique}`` means the cell's: references have a number under every one."""
    interval: str | None = None
    """Field of its interval; ``None``: no interval. ``compared`` measures always have one."""
    share: bool = False
    """Whether it is a share or a difference of shares, shown in per cent or points."""
    of_model: bool = False
    """Whether an attack on the language model measures it, not an attack on the text."""
    digits: int = 1
    """Number of decimals shown."""
    better: Literal["lower", "higher"] | None = None
    reference: Reference | None = None
    protocol: bool = False
    """Whether only numbers of the same evaluation protocol compare."""
    over_seeds: bool = False
    """Whether mean and deviation over the seeds of a condition are part of the summary and of MLflow."""
    interval_over_seeds: bool = False
    """Whether several seeds are shown by their interval rather than by their deviation."""
    logarithmic: bool = False
    """Whether plots have a logarithmic axis."""
    views: frozenset[str] = frozenset({DOCUMENT, PAGE, MLFLOW})

    @property
    def blind(self) -> str:
        """The column with an attack's chance level."""
        return f"{self.name}_blind"

    @property
    def of_speech(self) -> bool:
        """Whether the recogniser alone, without a language model, has it too."""
        return self.step in ("word_error_rate", "rescore") or self.name.startswith("wer_")

    @property
    def by_technique(self) -> bool:
        """Whether references, which belong to no technique, have a number under each."""
        return self.field.startswith(MASKED_WORDS)

    def estimate(self, rows: Sequence[Row]) -> Estimate | None:
        """The number of a condition in the shown unit, from the rows of its seeds."""
        return self._shown(rows, self.name)

    def chance(self, rows: Sequence[Row]) -> Estimate | None:
        """The result of the same attack where there is nothing to find, in the shown unit."""
        return self._shown(rows, self.blind)

    def _shown(self, rows: Sequence[Row], column: str) -> Estimate | None:
        found = estimate(rows, column) if rows else None
        return found.times(100) if found is not None and self.share else found


def follows_protocol(rows: Sequence[Row]) -> bool:
    """Whether all rows follow the protocol of their dataset's Oracle; others do not compare with the table's."""
    return not any(row.get("protocol_differs") for row in rows)
