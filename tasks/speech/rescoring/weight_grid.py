"""The weights of rescoring, tuned on development lists: a grid, and finer steps around the best of it.

score = recogniser's + lm_weight * log P_lm - source_weight * log P_source + insertion_bonus * words
        + unknown_word_bonus * unknown words

The errors of each hypothesis are counted once, so a point of the grid is one pass over arrays. Of points with equally
many errors, the one with the smallest weights counts: it changes the least.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tasks.speech.rescoring.hypothesis_table import LM, SOURCE, UNKNOWN, WORD_COUNT, HypothesisTable
from tasks.speech.rescoring.settings import RescoringSettings

SHOWN_NAMES = {
    LM: "lm_weight",
    WORD_COUNT: "insertion_bonus",
    SOURCE: "source_weight",
    UNKNOWN: "unknown_word_bonus",
}
"""What the weight of each feature is called in reports."""


@dataclass(frozen=True)
class TunedWeights:
    """The weights with the fewest errors on development lists."""

    weights: Mapping[str, float]
    """By feature of ``HypothesisTable``; what is subtracted has a negative one."""
    errors: int
    """On the development lists."""
    points: int
    """Combinations that were tried."""
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


def tune_weights(table: HypothesisTable, axes: Mapping[str, Sequence[float]], refinements: int) -> TunedWeights:
    """Try every combination of the axes, then ``refinements`` rounds of half the step around the best."""
    names = list(axes)
    tried: dict[tuple[float, ...], int] = {}

    def errors_at(point: tuple[float, ...]) -> int:
        if point not in tried:
            tried[point] = table.error_count(dict(zip(names, point, strict=True)))
        return tried[point]

    def better(points: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
        return min(points, key=lambda point: (errors_at(point), sum(map(abs, point)), point))

    coarse = list(itertools.product(*axes.values()))
    best = better(coarse)
    at_edge = [
        name
        for name, value in zip(names, best, strict=True)
        if value != 0 and len(axes[name]) > 1 and value in (min(axes[name]), max(axes[name]))
    ]
    grid = _summary(names, coarse, tried)
    steps = [_step(sorted(axes[name]), value) for name, value in zip(names, best, strict=True)]
    for number in range(1, refinements + 1):
        around = [
            [_within(name, round(value + sign * step / 2**number, 6)) for sign in ((-1, 0, 1) if step else (0,))]
            for name, value, step in zip(names, best, steps, strict=True)
        ]
        best = better([best, *itertools.product(*around)])
    return TunedWeights(dict(zip(names, best, strict=True)), tried[best], len(tried), at_edge, grid)


def _step(values: Sequence[float], value: float) -> float:
    """Distance to the farther neighbour in the grid; 0 where the grid has this value alone."""
    place = list(values).index(value)
    return max((abs(values[other] - value) for other in (place - 1, place + 1) if 0 <= other < len(values)), default=0)


def _within(name: str, value: float) -> float:
    """A language model is never subtracted, a source model or an unknown word never rewarded."""
    return max(value, 0.0) if name == LM else min(value, 0.0) if name in (SOURCE, UNKNOWN) else value


def _summary(
    names: Sequence[str], points: Sequence[tuple[float, ...]], errors: Mapping[tuple[float, ...], int]
) -> list[dict[str, float]]:
    shown = [place for place, name in enumerate(names) if name in (LM, WORD_COUNT)]
    best: dict[tuple[float, ...], int] = {}
    for point in points:
        key = tuple(point[place] for place in shown)
        best[key] = min(best.get(key, errors[point]), errors[point])
    return [
        {**{SHOWN_NAMES[names[place]]: value for place, value in zip(shown, key, strict=True)}, "errors": count}
        for key, count in best.items()
    ]
