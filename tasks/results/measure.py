"""What a measure is: the name of a number of a cell, what it is held against, and in which views it belongs.

``tasks.results.measures`` has the table of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.results.summary.estimate import Estimate, direction, estimate

TERMINAL, DOCUMENT, PAGE = "terminal", "document", "page"
"""Views with a table of the measure: the terminal, ``summary.md``, the report page."""
MLFLOW, MLFLOW_TABLE = "mlflow", "mlflow table"
"""A metric of every run, and a column of MLflow's table of runs."""
MASKED_WORDS = "masked_words.{technique}."
"""Where the numbers of words that the cell's technique masks stand."""
BELOW, ABOVE, OTHER_PROTOCOL = "▼", "▲", "‡"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """What the numbers of a measure are held against, by a column of the summary that has an interval."""

    column: str
    """A ratio or a difference, such as ``ratio_to_oracle``."""
    name: str
    neutral: float = 1.0
    """The column's value where there is no difference: 1 of a ratio, 0 of a difference."""
    marks: bool = False
    """Whether ``▼`` and ``▲`` beside the number are about this one."""
    full_name: str = ""
    """Where ``name`` says too little by itself."""
    sides: tuple[str, str] = ("below", "above")
    """What the two marks say."""

    def way(self, rows: Sequence[Row]) -> int:
        """-1 where the interval lies below ``neutral``, 1 where above, else 0."""
        return direction(rows, self.column, self.neutral)

    def said(self, way: int) -> str:
        """``below Baseline1``, ``not told apart from Baseline1``."""
        return f"{ {-1: self.sides[0], 0: 'not told apart from', 1: self.sides[1]}[way] } {self.name}"


def at_path(record: object, path: Sequence[str]) -> Any:  # noqa: ANN401 - a value of a JSON document
    """What stands at the end of a path of fields; ``None`` where a record on the way lacks it."""
    for name in path:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number of a cell: a column of ``summary.json``, and its name in MLflow."""

    name: str
    title: str = ""
    """For people, with the unit that is shown."""
    heading: str = ""
    """Above a table of its own; the title where there is none."""
    short: str = ""
    """For the head of a narrow column."""
    step: str
    """The report that it stands in: one of ``STEPS``, ``fluency`` (a record for each fill of a corpus), ``conclusion``
    (a record for each text), ``unmasked`` (a record for each technique), ``word_error_rate``, ``rescore`` (the same by
    n-best lists alone) or ``audit``, which need not have it; ``compared``: the summary computes it from the scores of
    two cells."""
    field: str = ""
    """Where it stands under ``measured``; the name where there is none. Dots lead into records. ``masked_words`` has
    one for each technique, and ``{technique}`` stands for the cell's: references have a number under every one."""
    kind: Literal["number", "number?", "count", "count?"] = "number?"
    """What stands there; with ``?`` it may be null."""
    interval: str | None = None
    """Where its interval stands; ``None``: it has none. ``compared`` measures have one always."""
    share: bool = False
    """Whether it is a share or a difference of shares, shown in per cent or points."""
    of_model: bool = False
    """Of what attacks find: whether the language model is attacked, and not the text."""
    digits: int = 1
    """Decimals that are shown."""
    better: Literal["lower", "higher"] | None = None
    references: tuple[Reference, ...] = ()
    protocol: bool = False
    """Whether only numbers of the same evaluation protocol compare."""
    over_seeds: bool = False
    """Whether mean and deviation over the seeds of a condition are part of the summary and of MLflow."""
    interval_over_seeds: bool = False
    """Whether several seeds are shown by their interval rather than by their deviation."""
    logarithmic: bool = False
    """Whether plots have a logarithmic axis."""
    views: frozenset[str] = frozenset({TERMINAL, DOCUMENT, PAGE, MLFLOW})

    @property
    def blind(self) -> str:
        """The column that says what an attack reaches where there is nothing to find."""
        return f"{self.name}_blind"

    @property
    def of_speech(self) -> bool:
        """Whether the recogniser alone, without a language model, has it too."""
        return self.step in ("word_error_rate", "rescore") or self.name.startswith("wer_")

    @property
    def by_technique(self) -> bool:
        """Whether references, which belong to no technique, have a number under each."""
        return self.field.startswith(MASKED_WORDS)

    @property
    def reference(self) -> Reference | None:
        """What the marks are about."""
        return next((reference for reference in self.references if reference.marks), None)

    @property
    def meaning(self) -> str:
        """What the marks say, as a part of a legend."""
        found = self.reference
        if found is None:
            return ""
        said = f"{BELOW} below, {ABOVE} above {found.full_name or found.name}: the interval"
        if found.column == self.name:
            return f"{said} excludes it"
        return f"{said} of the paired {'ratio' if found.neutral else 'difference'} excludes {found.neutral:g}"

    def estimate(self, rows: Sequence[Row]) -> Estimate | None:
        """The number of a condition, from the rows of its seeds, in the unit that is shown."""
        found = estimate(rows, self.name) if rows else None
        return found.times(100) if found is not None and self.share else found

    def mark(self, rows: Sequence[Row]) -> str:
        """``▼`` or ``▲`` where the interval excludes the reference, ``‡`` of another protocol, else nothing."""
        if self.protocol and not follows_protocol(rows):
            return OTHER_PROTOCOL
        return {-1: BELOW, 1: ABOVE, 0: ""}[self.reference.way(rows)] if self.reference is not None else ""


def follows_protocol(rows: Sequence[Row]) -> bool:
    """Whether all rows follow the protocol of their dataset's Oracle; others do not compare with the table's."""
    return not any(row.get("protocol_differs") for row in rows)
