"""Identifiers left unmasked in a whole text, estimated from the reviewed lines, with design-based intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.audit.clear_text import Words
from tasks.review.plan import Plan
from tasks.review.record import Mark


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with both ends of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Unmasked:
    """Identifiers of one sort (direct, quasi, or one class) that one technique leaves unmasked."""

    found: int
    """Identifiers in the reviewed lines."""
    unmasked_found: int
    """Those of them with at least one word that the technique does not mask."""
    per_thousand: Interval
    """Unmasked identifiers per 1,000 lines of the whole text."""
    recall: Interval | None
    """Share of identifiers that are masked whole; ``None`` where the sample holds none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a review says of one technique."""

    lines: int
    """Lines reviewed."""
    direct: Unmasked
    quasi: Unmasked
    classes: Mapping[str, Unmasked]


def estimate(
    plan: Plan, marks: Mapping[int, Sequence[Mark]], masked: Mapping[int, Words], confidence: float = 0.95
) -> Estimate:
    """What one technique leaves unmasked.

    ``marks``: by line number, for the first n lines of the plan's queue, an empty sequence where a line has none.
    ``masked``: the words of these lines that the technique masks.
    """
    raise NotImplementedError


def lines_needed(plan: Plan, reviewed: int, limit: float, confidence: float = 0.95) -> int | None:
    """How many lines are still to be reviewed until the upper bound is at most ``limit`` unmasked identifiers per 1,000
    lines, if no further one is found; ``None`` where the whole text would not do."""
    raise NotImplementedError
