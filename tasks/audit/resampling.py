"""Statistics of attacks: checked scores, and intervals from resamples."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from tasks.errors import ModelError
from tasks.filling.restoration import wilson_interval
from tasks.language_model.evaluation.bootstrap import (
    percentile_interval,
    resample_counts,
    student_stretch,
)


def scores_of(values: ArrayLike, whose: str) -> np.ndarray:
    """Scores as float64. Raises ``ModelError`` if one is not finite: it would take the highest or the lowest rank."""
    scores = np.asarray(values, dtype=np.float64)
    undefined = int(np.count_nonzero(~np.isfinite(scores)))
    if undefined:
        raise ModelError(
            f"{undefined} of {scores.size} scores of {whose} are not finite; the model that gave them has diverged: "
            "train it again with a lower learning rate"
        )
    return scores


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], units: int, samples: int, seed: int) -> np.ndarray:
    """A statistic of each resample (R,); it gets blocks of counts (r, units), how often each unit is drawn."""
    return np.concatenate([statistic(counts) for counts in resample_counts(units, samples, seed)])


def interval_of(
    value: float, resampled: np.ndarray, drawn: int, confidence: float, bounds: tuple[float, float]
) -> tuple[float, float] | None:
    """Percentiles of the resampled values (R,), widened for few ``drawn`` units (``student_stretch``).

    ``None`` with fewer than two units, or if too many resamples are undefined. Both ends stay within ``bounds``.
    """
    if drawn < 2:
        return None
    ends = percentile_interval(value + (resampled - value) * student_stretch(drawn, confidence), confidence)
    return None if ends is None else (max(bounds[0], ends[0]), min(bounds[1], ends[1]))


def as_wide_as_wilson(
    interval: tuple[float, float] | None, share: float, total: int, confidence: float
) -> tuple[float, float] | None:
    """An interval of a share, at least as wide as Wilson's for ``total`` independent places."""
    independent = wilson_interval(round(share * total), total, confidence)
    if interval is None or independent is None:
        return interval
    return min(interval[0], independent[0]), max(interval[1], independent[1])
