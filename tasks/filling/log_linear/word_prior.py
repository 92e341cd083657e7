"""How often each word is wanted at the masked places of a corpus, estimated from the masked text alone.

A filler that was trained on other text has other words in mind. Saerens, Latinne and Decaestecker (2002, "Adjusting the
outputs of a classifier to new a priori probabilities", equations 2.3 and 2.4) give the probabilities of a classifier
under other priors, and an EM algorithm that finds those priors from the outputs themselves: the new prior of a class
is the mean of its adjusted probabilities over all places. Here the classes are words. With few places for many words
the mean is drawn towards where it started, as if so many more places with the first prior had been seen (a Dirichlet
prior; each step then makes the posterior of the prior no less probable).
"""

from collections.abc import Iterable, Iterator

import numpy as np

_ROWS = 256


def mean_probabilities(log_scores: np.ndarray) -> np.ndarray:
    """``(W,)`` float64: mean over ``N`` places of the probabilities that ``(N, W)`` scores are the logarithms of, up
    to a constant in each row."""
    return _mean(_rows(log_scores), log_scores.shape[1], len(log_scores))


def estimate_prior(log_scores: np.ndarray, start: np.ndarray, steps: int, smoothing: float) -> np.ndarray:
    """``(W,)`` float64 prior after so many EM steps from ``start`` (sums to 1).

    ``log_scores``: ``(N, W)``, for each place the log of what the context says for each word, priors left out. The
    result of a step is ``(sum over places of p(w | place) + smoothing * start(w)) / (N + smoothing)``.
    """
    prior = start.astype(np.float64)
    number = len(log_scores)
    for _ in range(steps if number else 0):
        log_prior = np.log(prior)
        mean = _mean((rows + log_prior for rows in _rows(log_scores)), len(prior), number)
        prior = (number * mean + smoothing * start) / (number + smoothing)
    return prior


def _rows(log_scores: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(log_scores), _ROWS):
        yield log_scores[first : first + _ROWS].astype(np.float64)


def _mean(parts: Iterable[np.ndarray], width: int, number: int) -> np.ndarray:
    total = np.zeros(width)
    for part in parts:
        chances = np.exp(part - part.max(axis=1, keepdims=True))
        total += (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0)
    return total / number
