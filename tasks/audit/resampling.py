"""Statistics of attacks: checked scores, and intervals from resamples."""

import numpy as np
from numpy.typing import ArrayLike

from tasks.errors import ModelError
from tasks.language_model.evaluation.bootstrap import (
    percentile_interval,
    ratio_of_sums,
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


def perplexity_ratio(
    logs: np.ndarray, targets: np.ndarray, samples: int, confidence: float, seed: int
) -> tuple[float, tuple[float, float] | None]:
    """Perplexity of the first column divided by the second, and its interval from a bootstrap over sentences.

    ``logs`` (S, 2): log-probabilities of the sentences in nats; ``targets`` (S, 2): their numbers of targets.
    """

    def log_ratio(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        means: np.ndarray = ratio_of_sums(sums, counts)
        return means[..., 1] - means[..., 0]

    value = float(log_ratio(logs.sum(axis=0), targets.sum(axis=0)))
    drawn = [log_ratio(counts @ logs, counts @ targets) for counts in resample_counts(len(logs), samples, seed)]
    ends = interval_of(value, np.concatenate(drawn), len(logs), confidence, (-np.inf, np.inf))
    return float(np.exp(value)), (float(np.exp(ends[0])), float(np.exp(ends[1]))) if ends else None
