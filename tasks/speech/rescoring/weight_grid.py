"""The weights of rescoring, tuned on development lists: a grid, and what of it is best on resamples of the lists.

score = recogniser's + lm_weight * log P_lm - source_weight * log P_source + insertion_bonus * words
        + unknown_word_bonus * unknown words

The errors of each hypothesis are counted once, so a point of the grid is one pass over arrays. Around the best point
many others have nearly as few errors, and which of them has the fewest is chance: on real lists it moved the language
model's weight between 0.2 and 0.4 for models that hardly differ. So the utterances are drawn again and again, with
replacement, and the weights are the mean of the points that have the fewest errors on each draw (Breiman 1996, "Bagging
predictors"). Of points with equally many errors, the one with the smallest weights counts: it changes the least.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.speech.rescoring.hypothesis_table import LM, SOURCE, UNKNOWN, WORD_COUNT, HypothesisTable
from tasks.speech.rescoring.settings import RescoringSettings

SHOWN_NAMES = {
    LM: "lm_weight",
    WORD_COUNT: "insertion_bonus",
    SOURCE: "source_weight",
    UNKNOWN: "unknown_word_bonus",
}
"""What the weight of each feature is called in reports."""
_SEED = 1


@dataclass(frozen=True)
class TunedWeights:
    """The weights that development lists speak for."""

    weights: Mapping[str, float]
    """By feature of ``HypothesisTable``; what is subtracted has a negative one."""
    errors: int
    """On the development lists."""
    fewest_errors: int
    """Those of the best point of the grid."""
    points: int
    """Combinations that were tried."""
    deviation: Mapping[str, float]
    """Standard deviation of each weight over the resamples; empty without resamples."""
    at_edge: Sequence[str]
    """Features whose best weight in the grid is the grid's first or last, and not 0: the grid may be too narrow."""
    grid: Sequence[Mapping[str, float]] = field(default_factory=list)
    """Errors at each pair of LM weight and insertion bonus of the grid, with the best of the other weights."""

    def shown(self) -> dict[str, float]:
        """The weights by their names in reports; the source model's is positive."""
        return {
            SHOWN_NAMES[name]: abs(weight) if name == SOURCE else weight
            for name, weight in sorted(self.weights.items())
        }


def axes_of(settings: RescoringSettings, table: HypothesisTable) -> dict[str, list[float]]:
    """The weights of the grid for each feature that the table has."""
    axes = {
        LM: settings.lm_weights,
        WORD_COUNT: settings.insertion_bonuses,
        UNKNOWN: settings.unknown_word_bonuses
        if UNKNOWN in table.features and table.features[UNKNOWN].any()
        else [0.0],
        SOURCE: [-weight for weight in settings.source_weights],
    }
    return {name: values for name, values in axes.items() if name in table.features}


def tune_weights(table: HypothesisTable, axes: Mapping[str, Sequence[float]], resamples: int) -> TunedWeights:
    """The mean of the points of the grid with the fewest errors on each of ``resamples`` draws of the utterances.

    The draws are the same for all tables with as many utterances, so systems are tuned on the same ones. Without
    resamples, the point with the fewest errors on the utterances as they are.
    """
    names = list(axes)
    # The smallest weights come first, and the first of equal ones counts.
    points = sorted(itertools.product(*axes.values()), key=lambda point: (sum(map(abs, point)), point))
    errors = np.stack([table.errors_of(dict(zip(names, point, strict=True))) for point in points])  # (P, U)
    totals = errors.sum(axis=1)
    best = points[int(totals.argmin())]
    weights, deviation = np.array(best), {}
    if resamples:
        utterances = len(table)
        generator = np.random.default_rng(_SEED)
        draws = generator.multinomial(utterances, np.full(utterances, 1 / utterances), size=resamples)  # (R, U)
        # Whole numbers below 2**53: the products in float64 are exact.
        found = (draws.astype(np.float64) @ errors.T.astype(np.float64)).argmin(axis=1)  # (R,)
        chosen = np.array(points)[found]  # (R, N)
        weights = chosen.mean(axis=0).round(6)
        deviation = dict(zip(names, chosen.std(axis=0).round(6).tolist(), strict=True))
    tuned = dict(zip(names, weights.tolist(), strict=True))
    at_edge = [
        name
        for name, value in zip(names, best, strict=True)
        if value != 0 and len(axes[name]) > 1 and value in (min(axes[name]), max(axes[name]))
    ]
    return TunedWeights(
        weights=tuned,
        errors=table.error_count(tuned),
        fewest_errors=int(totals.min()),
        points=len(points),
        deviation=deviation,
        at_edge=at_edge,
        grid=_summary(names, points, totals.tolist()),
    )


def _summary(
    names: Sequence[str], points: Sequence[tuple[float, ...]], errors: Sequence[int]
) -> list[dict[str, float]]:
    shown = [place for place, name in enumerate(names) if name in (LM, WORD_COUNT)]
    best: dict[tuple[float, ...], int] = {}
    for point, count in zip(points, errors, strict=True):
        key = tuple(point[place] for place in shown)
        best[key] = min(best.get(key, count), count)
    return [
        {**{SHOWN_NAMES[names[place]]: value for place, value in zip(shown, key, strict=True)}, "errors": best[key]}
        for key in sorted(best)
    ]
