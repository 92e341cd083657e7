"""Geometric noise for counts, and word rates by empirical Bayes from noisy counts (Robbins 1956).

The noise X is an integer with P(X = k) proportional to ratio^abs(k) (Ghosh, Roughgarden and Sundararajan 2009). Public
text predicts a word w at r of the counted places. It occurs at c places; y = c + X is observed:

    m = 4^k with probability p(k),    t ~ exponential with mean r m,    c ~ Poisson(t)
    E(t | y) = sum over k, c of P(k, c | y) (c + 1) r m / (r m + 1)

The p(k) maximise the probability of all noisy counts, found by EM (Kiefer and Wolfowitz 1956; Efron 2014, "Two modeling
strategies for empirical Bayes estimation"). A large count then decides alone. Words without a count share the rest.
Only noisy counts are used, so it costs no privacy.
"""

import math

import numpy as np

_NEGLIGIBLE = 20.0
"""Largest noise considered: its probability is exp(-20) relative to no noise."""


def noise(number: int, ratio: float, stream: bytes) -> np.ndarray:
    """Noise ``(number,)`` int64 from ``16 * number`` secret bytes: the difference of two geometric numbers."""
    drawn = np.frombuffer(stream, dtype="<u8").reshape(2, number)
    uniform = ((drawn >> 11).astype(np.float64) + 0.5) / 2.0**53
    steps = np.floor(np.log(uniform) / math.log(ratio)).astype(np.int64)
    return steps[0] - steps[1]


def threshold(number: int, ratio: float) -> int:
    """The least T with ``number`` P(X >= T) <= 1, where P(X >= T) is ratio^T / (1 + ratio)."""
    return max(1, math.ceil(math.log((1 + ratio) / max(1, number)) / math.log(ratio)))


_FACTORS = 4.0 ** np.arange(-6, 11)
"""The values of m."""
_STEPS = 100


def posterior_rates(noisy: np.ndarray, expected: np.ndarray, ratio: float) -> np.ndarray:
    """``(W,)`` float64 E(t | y) in places, by noisy counts ``(W,)`` int64 and expected rates ``(W,)``, all above 0.

    ``ratio``: ratio of the geometric distribution of the noise, between 0 and 1.
    """
    around = math.ceil(_NEGLIGIBLE / -math.log(ratio))
    noise = np.arange(around + int(max(0, -noisy.min(initial=0))) + 1) * math.log(ratio)
    log_likelihood = np.empty((len(noisy), len(_FACTORS)))
    means = np.empty_like(log_likelihood)
    for column, factor in enumerate(_FACTORS):
        log_likelihood[:, column], means[:, column] = _component(noisy, expected * factor, noise, around)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    shares = np.full(len(_FACTORS), 1 / len(_FACTORS))
    for _ in range(_STEPS):
        joint = likelihood * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    joint = likelihood * shares
    rates: np.ndarray = (joint * means).sum(axis=1) / joint.sum(axis=1)
    return rates


def _component(noisy: np.ndarray, rate: np.ndarray, noise: np.ndarray, around: int) -> tuple[np.ndarray, np.ndarray]:
    """``(W,)`` log P(y), up to a constant, and ``(W,)`` E(t | y), for an exponential t with the mean ``rate``.

    ``noise``: log-probability of each distance of y and c. The sum is over counts ``around`` y, or the least counts.
    """
    log_odds = np.log(rate / (1 + rate))
    total = np.full(len(noisy), -np.inf)
    weighted = np.full(len(noisy), -np.inf)
    nearest = np.maximum(noisy, 0)
    for offset in range(-around, around + 1):
        count = np.maximum(nearest + offset, 0)
        log_chance = count * log_odds + noise[np.abs(noisy - count)]
        log_chance[nearest + offset < 0] = -np.inf
        total = np.logaddexp(total, log_chance)
        weighted = np.logaddexp(weighted, log_chance + np.log(count + 1.0))
    return total - np.log1p(rate), np.exp(weighted - total) * rate / (1 + rate)
