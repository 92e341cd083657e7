"""Tuning of language model weights on dev: the mean of the best points of a grid on resamples of dev.

Many points of a grid have nearly as few errors as the best one, so the best point depends on chance. On real lists the
language model's weight moved between 0.2 and 0.4, for models that hardly differ. So the utterances are drawn many times
with replacement. The weights are the mean of the points with the fewest errors on each draw (Breiman 1996, "Bagging
predictors").
"""

from collections.abc import Mapping, Sequence

import numpy as np

WORD_COUNT, LM, INTERNAL, UNKNOWN = "words", "lm", "internal", "unknown_words"
"""Parts of a hypothesis's score that have weights."""
_SEED = 1


def winners(
    score: np.ndarray, parts: Mapping[str, np.ndarray], weights: Mapping[str, float], divisor: np.ndarray | float = 1.0
) -> np.ndarray:
    """Index of the hypothesis with the highest weighted sum for each utterance (U,), from scores and parts (U, H).

    Of equal ones the first counts. Sums are divided by ``divisor`` before they are compared.
    """
    total = score
    for name, weight in weights.items():
        if weight:
            total = total + weight * parts[name]
    return (total / divisor).argmax(axis=1)


def mean_of_best(
    points: np.ndarray, errors: np.ndarray, resamples: int, digits: int
) -> tuple[list[float], list[float]]:
    """The mean of the ``points`` (P, N) with the fewest ``errors`` (P, U) on draws of the utterances, rounded, and its
    standard deviation; of points with equally many errors, the first one counts.

    The draws are the same for all systems with as many utterances. Without resamples, returns the point with the fewest
    errors on the utterances as they are.
    """
    utterances = errors.shape[1]
    if not resamples:
        best = points[errors.sum(axis=1).argmin()]
        return best.tolist(), [0.0] * len(best)
    generator = np.random.default_rng(_SEED)
    draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=resamples)  # (R, U)
    # Whole numbers below 2**53: the products in float64 are exact.
    chosen = points[(draws.astype(np.float64) @ errors.T.astype(np.float64)).argmin(axis=1)]  # (R, N)
    return chosen.mean(axis=0).round(digits).tolist(), chosen.std(axis=0).round(digits).tolist()


def at_edge(axes: Mapping[str, Sequence[float]], best: Sequence[float]) -> list[str]:
    """Weights of the best point at an end of their axis, except 0: the grid may be too narrow."""
    return [
        name
        for (name, axis), value in zip(axes.items(), best, strict=True)
        if value and len(axis) > 1 and value in (min(axis), max(axis))
    ]
