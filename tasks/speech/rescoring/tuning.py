"""Tuning of the weights of fusion and of rescoring on dev (decision 0068).

score = recogniser's + lm_weight * log P_lm + insertion_bonus * words + ...

Each hypothesis of dev has the parts of its score and its word errors, as arrays. So a point of the grid of weights is
one pass over arrays. The utterances are drawn many times with replacement. The weights are the mean of the points with
the fewest errors on each draw (Breiman 1996, "Bagging predictors").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

LM, BONUS, INTERNAL, UNKNOWN = "lm_weight", "insertion_bonus", "internal_lm_weight", "unknown_word_bonus"
"""Names of weights, and of the parts of a score that they multiply."""
Weights = Mapping[str, float]
"""Weights by name."""
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class ScoredHypotheses:
    """Utterances by hypotheses (U, H); shorter lists are padded."""

    score: np.ndarray
    """The recogniser's score (U, H), float64; minus infinity for padding."""
    errors: np.ndarray
    """Fewest edits from the reference (U, H), int64; for an empty list, all words of the reference."""
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Parts of the score (U, H) by the name of their weight, float64; 0 for padding."""
    divisor: np.ndarray | float = 1.0
    """Number (U, H) by which a sum is divided before sums are compared."""

    def choice(self, weights: Weights) -> np.ndarray:
        """Index of the hypothesis with the highest weighted sum for each utterance (U,); the first of equal ones."""
        total = self.score
        for name, weight in weights.items():
            if weight:
                total = total + weight * self.parts[name]
        return (total / self.divisor).argmax(axis=1)

    def errors_of(self, weights: Weights) -> np.ndarray:
        """Errors of the choice for each utterance (U,), int64."""
        return np.take_along_axis(self.errors, self.choice(weights)[:, None], axis=1)[:, 0]


def padded(rows: Sequence[Sequence[float] | np.ndarray], filler: float, width: int = 1) -> np.ndarray:
    """Rows of different lengths as one array (U, H) of at least this width, float64."""
    table = np.full((len(rows), max([width, *map(len, rows)])), filler, dtype=np.float64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True)
class TunedWeights:
    """Weights by name, and how they were found."""

    weights: dict[str, float]
    deviation: dict[str, float]
    """Standard deviation of each weight over the resamples; 0 without resamples."""
    points: list[dict[str, float]]
    """The grid."""
    errors: list[int]
    """Errors of all utterances at each point."""
    at_edge: list[str]
    """Weights of the best point at an end of their axis, except 0: the grid may be too narrow."""


def tune(
    hypotheses: ScoredHypotheses,
    axes: Mapping[str, Sequence[float]],
    points: Sequence[tuple[float, ...]],
    resamples: int,
    digits: int,
) -> TunedWeights:
    """The mean of the best ``points`` of a grid on resamples of the utterances, rounded to ``digits``.

    ``axes`` has the values of each weight. Of points with equally many errors, the first one counts. The draws are the
    same for all systems with as many utterances. Without resamples, it is the best point on the utterances as they are.
    """
    named = [dict(zip(axes, point, strict=True)) for point in points]
    errors = np.stack([hypotheses.errors_of(weights) for weights in named])  # (P, U)
    totals, utterances = errors.sum(axis=1), errors.shape[1]
    first = named[int(totals.argmin())]
    mean, deviation = dict(first), dict.fromkeys(axes, 0.0)
    if resamples:
        generator = np.random.default_rng(_SEED)
        draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=resamples)  # (R, U)
        # Whole numbers below 2**53: the products in float64 are exact.
        chosen = np.array(points)[(draws.astype(np.float64) @ errors.T.astype(np.float64)).argmin(axis=1)]  # (R, N)
        mean = dict(zip(axes, chosen.mean(axis=0).round(digits).tolist(), strict=True))
        deviation = dict(zip(axes, chosen.std(axis=0).round(digits).tolist(), strict=True))
    at_edge = [
        name for name, axis in axes.items() if first[name] and len(axis) > 1 and first[name] in (min(axis), max(axis))
    ]
    return TunedWeights(mean, deviation, named, totals.tolist(), at_edge)
