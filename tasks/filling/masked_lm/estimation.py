"""Estimation for ``log_linear``: weights by maximum likelihood, matched frequencies, and files of learned weights.

**Weights.** The model gives candidate ``w`` of place ``i`` the probability

    p(w | i) = exp(theta . f_i(w)) / sum over v of exp(theta . f_i(v))

and theta maximises the sum over places of log p(true word | i). This is a conditional logit (McFadden 1974), the
maximum-entropy model of Berger et al. (1996, section 3). It is concave in theta, so Newton's method finds the single
optimum in a few steps, without a learning rate and without randomness. The gradient of one place is the features of its
word minus their mean under the model. The curvature is minus their covariance under the model.

**Matched frequencies.** With counted words (``prior: counted``), the fills must have the counted frequencies f(g) of
single words or of groups. Consider all distributions p(w | x) whose mean over the places has these frequencies. The one
nearest to the filler's q(w | x), by the sum of KL(p || q) over the places, is q(w | x) m(g), normalised at each place
(Csiszar 1975, "I-divergence geometry", section 3). Iterative proportional fitting finds the m (Deming and Stephan
1940). Without it, likely words are written too often: in 4,000 lines, 14 to 27 % of all fills had to change group.

**Files.** One file stores the three weights and the filler's mean log-probability of each candidate, for later fills.
The file of the shipped filler (``weighing.json``) was learned from the generic text of ``params.yaml`` alone, with a
random share of masked words. This text was held out from its training. A fill with other candidates renormalises the
averages of its words. The weights that a fill learns are in ``learned_weights`` in the work folder, readable only by
its owner. They come from generic text and the word counts, with any prior, so they contain nothing of a private text.
The file name is a hash of all inputs of the learning, so an equal fill finds the file.
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
    from tasks.filling.methods.log_linear import LogLinear
    from tasks.filling.opened_filler import OpenedFiller
    from tasks.filling.prepared_fill import Corpus

_MOST_STEPS = 50
_ENOUGH = 1e-12
"""Expected gain of a step, in nats per place, below which the fit ends."""
_SMALLEST_SHARE = 1e-6
"""Smallest share of a step: a step that leads downhill is halved, but not below this share."""
_CHUNK_CELLS = 1 << 22
"""Number of values of one feature that are processed at once in float64 (32 MiB)."""
_PULL = 1e-4
"""L2 penalty: half of this times the squared distance from the start is subtracted from the log-likelihood of all
places. It is negligible for hundreds of places. It ensures an optimum if a few places are separable, or if two features
are equal."""

Features = Callable[[slice], np.ndarray]
"""Function from places ``i`` to ``j`` to their features ``(F, j - i, W)``, all above minus infinity."""


@dataclass(frozen=True)
class FittedWeights:
    """Result of a fit."""

    weights: np.ndarray
    """``(F,)`` float64."""
    before: float
    """Log-likelihood in nats per place at the starting weights."""
    after: float
    """Log-likelihood in nats per place at the learned weights."""


def fit_weights(
    features: Features, targets: np.ndarray, width: int, start: Sequence[float], free: Sequence[bool]
) -> FittedWeights:
    """The ``F`` weights that make the words of ``N`` places most probable.

    ``targets``: ``(N,)`` index of each place's word among its ``width`` candidates. ``start``: initial weights; weights
    that are not ``free`` do not change.
    """
    origin = np.array(start, dtype=np.float64)
    movable = np.flatnonzero(free)
    pull = _PULL / len(targets)

    def at(weights: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Log-likelihood, and the objective with its gradient and curvature in the free weights."""
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
    return FittedWeights(weights, before, after)


def _likelihood(
    features: Features, targets: np.ndarray, width: int, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean log-likelihood in nats per place, its gradient ``(F,)``, and its negative second derivative ``(F, F)``."""
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
"""Maximum change of a multiplier in one step, so that the multiplier of a word unlikely at all places cannot jump."""


def mean_probabilities(log_scores: np.ndarray) -> np.ndarray:
    """``(W,)`` float64: mean probabilities over ``N`` places, from log-probabilities ``(N, W)`` up to a constant in
    each row."""
    return _mean(_rows(log_scores), log_scores.shape[1], len(log_scores))


def match_frequencies(
    log_scores: np.ndarray, groups: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, dict[str, float | int]]:
    """``(W,)`` float64 logs of multipliers m for probabilities proportional to exp(score) * m, and report figures.

    The mean of the probabilities over places, summed over the words of each group, is then ``wanted``.
    ``log_scores``: ``(N, W)`` float32, at least one place; ``groups``: ``(W,)`` from 0; ``wanted``: ``(G,)`` float64,
    all above 0, sum 1. Ends when the total variation distance is at most 0.005, or after 50 steps. The
    figures have this distance without and with the multipliers: the share of all fills that would change group.
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
    return log_multipliers, {
        "groups": len(wanted),
        "distance_before": distances[0],
        "distance": distances[-1],
        "steps": len(distances) - 1,
    }


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
    """Weights and averages learned from generic text."""

    weights: dict[str, float]
    """Weights of ``filler``, ``frequency`` and ``average``."""
    averages: dict[str, float]
    """From word to the log of the filler's mean probability, in nats, normalised over these words."""
    measured: dict[str, Any]
    """Figures of the learning for a report."""

    def log_averages(self, words: Sequence[str]) -> np.ndarray:
        """``(A,)`` averages of other words, normalised over them. Unknown words have the median."""
        usual = float(np.median(list(self.averages.values())))
        found = np.array([self.averages.get(word, usual) for word in words], dtype=np.float64)
        return np.asarray(found - np.logaddexp.reduce(found))

    def write(self, path: Path) -> None:
        """Write the file, readable only by its owner."""
        make_folder(path.parent, private=True)
        with atomic_writer(path, private=True) as stream:
            json.dump({"weights": self.weights, "averages": self.averages, "measured": self.measured}, stream)

    @classmethod
    def read(cls, path: Path) -> "LearnedWeights":
        """Read the file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def shipped_weights() -> LearnedWeights:
    """Weights of the filler that ships with palimpsest."""
    return LearnedWeights.read(_SHIPPED)


def place_of_weights(
    opened: "OpenedFiller", corpus: "Corpus", settings: "LogLinear", words: Sequence[str], counts: np.ndarray
) -> Path:
    """The file for the weights of a fill. ``words`` and ``counts`` ``(A,)``: its candidates."""
    from tasks.records.stage_report import content_hash
    from tasks.surroundings import model_state, surroundings

    learned_by = ("weights", "tuning_places", "tuning_share", "tuning_seed")
    document = {
        "settings": {name: value for name, value in settings.model_dump(mode="json").items() if name in learned_by},
        "tuning_text": content_hash(str(corpus.files.tuning_text)),
        "allowed_words": content_hash(corpus.files.allowed_words) if corpus.files.allowed_words else None,
        "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
        "counts": hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest(),
        "filler": model_state(opened.name),
        **surroundings(opened.threads, uses_model=bool(corpus.files.filler)),
    }
    key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return Path(corpus.work_folder) / "learned_weights" / f"{key}.json"
