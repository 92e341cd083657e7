"""Weights of a log-linear model by conditional maximum likelihood.

The model gives candidate ``w`` of place ``i`` the probability

    p(w | i) = exp(theta . f_i(w)) / sum over v of exp(theta . f_i(v))

and theta maximises the sum over places of log p(word that stands there | i). That is a conditional logit (McFadden
1974), the maximum-entropy model of Berger et al. (1996, section 3): concave in theta, so that there is one best value
and Newton's method finds it in a few steps, without a learning rate and without chance. Gradient and curvature of one
place are the features of its word minus their mean under the model, and minus their covariance under the model.

Where it is known how often a word is wanted (``prior: counted``), the fills are to write it as often. Of all
distributions p(w | x) of which the mean over the places has the wanted frequencies f(g), of single words or of groups
of them, the one that moves least from the filler's q(w | x), by the sum of KL(p || q) over the places, is q(w | x)
m(g), normalised at each place (Csiszar 1975, "I-divergence geometry", section 3); iterative proportional fitting finds
the m (Deming and Stephan 1940). Without it words that the filler likes are written too often: of 4,000 lines 14 to 27 %
of all fills had to be of another group.

Weights of ``log_linear`` that were learned, kept so that the next fill need not learn them again.

One file holds the three weights and the filler's mean log-probability of each word that it chose from. What comes with
the shipped filler (``weighing.json``) was learned from the generic text of ``params.yaml`` alone, held out from its
training, with a share of its words masked at random; a fill that has other words to choose from takes the averages of
those that it has, renormalised among them. What a fill learns itself is kept in ``learned_weights`` in the work folder,
readable by its owner alone: of generic text, by the word counts, whatever prior the fill has, so that nothing of a
private text is in it. There every fill that learns the same finds it, by one hash of all that it was learned from.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.files.atomic_file import atomic_writer, make_folder

if TYPE_CHECKING:
    from tasks.filling.context import FillContext
    from tasks.filling.methods.log_linear import LogLinear

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


_ROWS = 256
_MATCHING_STEPS = 50
_CLOSE_ENOUGH = 0.005
_LARGEST_FACTOR = 20.0
"""By which a word's multiplier changes in one step: one that hardly any place wants cannot jump."""


@dataclass(frozen=True)
class MatchedFrequencies:
    """Multipliers with which the fills have the wanted frequencies."""

    log_multipliers: np.ndarray
    """``(W,)`` float64, the same for all words of a group."""
    distance_before: float
    """Share of all fills that had to be of another group without the multipliers (total variation, 0 to 1)."""
    distance: float
    """The same with them."""
    groups: int
    steps: int

    def measured(self) -> dict[str, float | int]:
        """What a report says of it."""
        return {
            "groups": self.groups,
            "distance_before": self.distance_before,
            "distance": self.distance,
            "steps": self.steps,
        }


def mean_probabilities(log_scores: np.ndarray) -> np.ndarray:
    """``(W,)`` float64: mean over ``N`` places of the probabilities that ``(N, W)`` scores are the logarithms of, up
    to a constant in each row."""
    return _mean(_rows(log_scores), log_scores.shape[1], len(log_scores))


def match_frequencies(log_scores: np.ndarray, groups: np.ndarray, wanted: np.ndarray) -> MatchedFrequencies:
    """Multipliers m so that the mean over places of the probabilities proportional to exp(score) * m, summed over the
    words of each group, is ``wanted``.

    ``log_scores``: ``(N, W)`` float32, one place at least; ``groups``: ``(W,)`` from 0; ``wanted``: ``(G,)`` float64,
    all above 0, sum 1. Ends where the share of misplaced probability is at most 0.005, or after 50 steps.
    """

    def found(log_multipliers: np.ndarray) -> np.ndarray:
        mean = _mean((rows + log_multipliers for rows in _rows(log_scores)), len(groups), len(log_scores))
        return np.bincount(groups, weights=mean, minlength=len(wanted))

    log_multipliers = np.zeros(len(groups))
    largest = np.log(_LARGEST_FACTOR)
    distances: list[float] = []
    while True:
        shares = found(log_multipliers)
        distances.append(float(np.abs(shares - wanted).sum() / 2))
        if distances[-1] <= _CLOSE_ENOUGH or len(distances) > _MATCHING_STEPS:
            break
        change = np.log(wanted) - np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        log_multipliers += np.clip(change, -largest, largest)[groups]
    return MatchedFrequencies(log_multipliers, distances[0], distances[-1], len(wanted), len(distances) - 1)


def _rows(log_scores: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(log_scores), _ROWS):
        yield log_scores[first : first + _ROWS].astype(np.float64)


def _mean(parts: Iterable[np.ndarray], width: int, number: int) -> np.ndarray:
    total = np.zeros(width)
    for part in parts:
        chances = np.exp(part - part.max(axis=1, keepdims=True))
        total += (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0)
    return total / number


_SHIPPED = Path(__file__).with_name("weighing.json")


@dataclass(frozen=True)
class LearnedWeights:
    """What was learned from generic text."""

    weights: dict[str, float]
    """Of ``filler``, ``frequency`` and ``average``."""
    averages: dict[str, float]
    """Word to the log of the filler's mean probability of it, in nats, among all of these words."""
    measured: dict[str, Any]
    """What a report says of how they were learned."""

    def log_averages(self, words: Sequence[str]) -> np.ndarray:
        """``(A,)`` of other words, which share all probability among themselves; of unknown ones it is the median."""
        usual = float(np.median(list(self.averages.values())))
        found = np.array([self.averages.get(word, usual) for word in words], dtype=np.float64)
        return np.asarray(found - np.logaddexp.reduce(found))

    def write(self, path: Path) -> None:
        """Write the file, for the owner alone."""
        make_folder(path.parent, private=True)
        with atomic_writer(path, private=True) as stream:
            json.dump({"weights": self.weights, "averages": self.averages, "measured": self.measured}, stream)

    @classmethod
    def read(cls, path: Path) -> "LearnedWeights":
        """Read the file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def shipped_weights() -> LearnedWeights:
    """Those of the filler that comes with palimpsest."""
    return LearnedWeights.read(_SHIPPED)


def place_of_weights(context: "FillContext", settings: "LogLinear", words: Sequence[str], counts: np.ndarray) -> Path:
    """Where the weights of a fill are kept; ``words`` and their ``(A,)`` counts: what it chooses from."""
    from tasks.records.stage_report import content_hash
    from tasks.surroundings import model_state, surroundings

    learned_by = ("weights", "tuning_places", "tuning_share", "tuning_seed")
    document = {
        "settings": {name: value for name, value in settings.model_dump(mode="json").items() if name in learned_by},
        "tuning_text": content_hash(str(context.files.tuning_text)),
        "kept_words": content_hash(context.files.kept_words) if context.files.kept_words else None,
        "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
        "counts": hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest(),
        "filler": model_state(context.model.name),
        **surroundings(context.threads, uses_model=bool(context.files.filler)),
    }
    key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return Path(context.work_folder) / "learned_weights" / f"{key}.json"
