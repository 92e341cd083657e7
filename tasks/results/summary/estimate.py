"""A number of the table: one seed with its confidence interval, or several seeds with mean and spread."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of a quantity from one or several seeds."""

    value: float
    """Number of the one seed, or the mean over seeds."""
    low: float | None
    """Lower limit of the interval: of the one seed's bootstrap, or the smallest number of all seeds."""
    high: float | None
    """Upper limit of the interval, or the largest number of all seeds."""
    deviation: float | None
    """Standard deviation over seeds (divided by n - 1); ``None`` with one seed."""

    def times(self, factor: float) -> "Estimate":
        """The estimate in another unit: a share times 100 is in per cent."""
        low, high, deviation = (None if x is None else x * factor for x in (self.low, self.high, self.deviation))
        return Estimate(self.value * factor, low, high, deviation)


def mean(rows: Sequence[Mapping[str, Any]], field: str) -> float | None:
    """The mean of ``field`` over the rows of one cell's seeds; ``None`` if a seed has no number."""
    known = [row.get(field) for row in rows]
    values = [value for value in known if value is not None]
    return statistics.fmean(values) if values and len(values) == len(known) else None


def estimate(rows: Sequence[Mapping[str, Any]], field: str) -> Estimate | None:
    """The estimate of ``field`` over the rows of one cell's seeds; ``None`` if a seed has no number.

    A bootstrap over sentences does not cover the variation over seeds. So with several seeds the spread over them
    replaces the interval. A comparison has an interval over sentences and seeds (``over_seeds``).
    """
    known = [row.get(field) for row in rows]
    values = [value for value in known if value is not None]
    if not values or len(values) < len(known):
        return None
    together = over_seeds(rows, field)
    if together is not None:
        deviation = statistics.stdev(values) if len(values) > 1 else None
        low, high = together[f"{field}_ci"]
        return Estimate(together[field], low, high, deviation)
    intervals = [row.get(f"{field}_ci") for row in rows]
    # Numbers of the technique are equal for all seeds, with their interval.
    shared = intervals[0] is not None and all(
        pair == (values[0], intervals[0]) for pair in zip(values, intervals, strict=True)
    )
    if len(values) == 1 or shared:
        low, high = intervals[0] or (None, None)
        return Estimate(values[0], low, high, None)
    return Estimate(statistics.fmean(values), min(values), max(values), statistics.stdev(values))


def over_seeds(rows: Sequence[Mapping[str, Any]], field: str) -> Mapping[str, Any] | None:
    """The common record of all seeds in the rows of a condition, if it has an interval of ``field`` for these
    seeds."""
    together = rows[0].get("over_seeds") if rows else None
    if not together or not together.get(f"{field}_ci"):
        return None
    return together if set(together.get("seeds") or ()) == {row.get("seed") for row in rows} else None


def direction(rows: Sequence[Mapping[str, Any]], field: str, neutral: float = 1.0) -> int:
    """-1 if the interval of a ratio is below 1, 1 if above 1, else 0; of a difference, ``neutral`` is 0.

    For several seeds it is their common interval, and if the rows have none, the interval of every seed.
    """
    together = over_seeds(rows, field)
    intervals = [row.get(f"{field}_ci") for row in ([together] if together else rows)]
    if not intervals or any(interval is None for interval in intervals):
        return 0
    if all(interval[1] < neutral for interval in intervals if interval):
        return -1
    return 1 if all(interval[0] > neutral for interval in intervals if interval) else 0
