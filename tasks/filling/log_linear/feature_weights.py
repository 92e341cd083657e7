"""Weights of a log-linear model by conditional maximum likelihood.

The model gives candidate ``w`` of place ``i`` the probability

    p(w | i) = exp(theta . f_i(w)) / sum over v of exp(theta . f_i(v))

and theta maximises the sum over places of log p(word that stands there | i). That is a conditional logit (McFadden
1974), the maximum-entropy model of Berger et al. (1996, section 3): concave in theta, so that there is one best value
and Newton's method finds it in a few steps, without a learning rate and without chance. Gradient and curvature of one
place are the features of its word minus their mean under the model, and minus their covariance under the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_MOST_STEPS = 50
_ENOUGH = 1e-12
"""Nats per place that a step must promise for another one to be made."""
_SMALLEST_SHARE = 1e-6
"""A step that leads downhill is halved, but not below this share of it."""
_CHUNK_CELLS = 1 << 22
"""So many features of one kind at a time are worked on in float64 (32 MiB)."""
_PULL = 1e-4
"""Half of this times the squared distance from the start is taken off the log-likelihood of all places together: next
to nothing beside hundreds of places, but enough for a best value where a few places can be told without a mistake, or
where two features say the same."""

Features = Callable[[slice], np.ndarray]
"""From places ``i`` to ``j`` to their features ``(F, j - i, W)``, minus infinity nowhere."""


@dataclass(frozen=True)
class FittedWeights:
    """What was learned."""

    weights: np.ndarray
    """``(F,)`` float64."""
    before: float
    """Log-likelihood in nats per place at the starting weights."""
    after: float
    """The same at the learned weights."""
    steps: int
    """Newton steps."""


def fit_weights(
    features: Features, targets: np.ndarray, width: int, start: Sequence[float], free: Sequence[bool]
) -> FittedWeights:
    """The ``F`` weights that make the words of ``N`` places most probable.

    ``targets``: ``(N,)`` index of each place's word among its ``width`` candidates. ``start``: where to begin, for
    weights that are not ``free`` also where to stay.
    """
    origin = np.array(start, dtype=np.float64)
    movable = np.flatnonzero(free)
    pull = _PULL / len(targets)

    def at(weights: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Log-likelihood; what is maximised, with its gradient and its curvature in the movable weights."""
        value, gradient, curvature = _likelihood(features, targets, width, weights)
        away = weights - origin
        moved = (gradient - pull * away)[movable]
        return value, value - pull * float(away @ away) / 2, moved, curvature[np.ix_(movable, movable)]

    weights = origin
    before, aim, gradient, curvature = at(weights)
    after, steps = before, 0
    while movable.size and steps < _MOST_STEPS:
        step = np.linalg.solve(curvature + pull * np.eye(movable.size), gradient)
        if float(gradient @ step) / 2 < _ENOUGH:
            break
        share = 1.0
        while True:
            tried = weights.copy()
            tried[movable] += share * step
            result = at(tried)
            if result[1] >= aim or share < _SMALLEST_SHARE:
                break
            share /= 2
        if result[1] < aim:
            break
        weights, (after, aim, gradient, curvature) = tried, result
        steps += 1
    return FittedWeights(weights, before, after, steps)


def _likelihood(
    features: Features, targets: np.ndarray, width: int, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Per place: log-likelihood in nats, its gradient ``(F,)``, and its negative second derivative ``(F, F)``."""
    number = len(targets)
    size = max(1, _CHUNK_CELLS // width)
    value, gradient = 0.0, np.zeros(len(weights))
    curvature = np.zeros((len(weights), len(weights)))
    for first in range(0, number, size):
        part = slice(first, min(first + size, number))
        values = features(part).astype(np.float64)  # (F, n, W)
        scores = np.tensordot(weights, values, axes=1)  # (n, W)
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        sums = chances.sum(axis=1, keepdims=True)
        chances /= sums
        rows = np.arange(part.stop - part.start)
        value += float((scores[rows, targets[part]] - np.log(sums[:, 0])).sum())
        means = np.einsum("fnw,nw->fn", values, chances)
        gradient += (values[:, rows, targets[part]] - means).sum(axis=1)
        for one in range(len(weights)):
            weighted = values[one] * chances
            for other in range(one, len(weights)):
                second = float(np.einsum("nw,nw->", weighted, values[other])) - float(means[one] @ means[other])
                curvature[one, other] += second
                curvature[other, one] = curvature[one, other]
    return value / number, gradient / number, curvature / number
