"""Noise in whole numbers: P(X = k) proportional to ratio^abs(k) (Ghosh, Roughgarden and Sundararajan 2009).

How often words are wanted, by noisy counts and by what is expected without them: empirical Bayes (Robbins 1956).

A word w is expected at r(w) of the places that were counted, as public text has it. In this text it has a rate t of its
own, m times that and scattered, has stood at c places, and y = c + X was seen, P(X = x) ~ ratio^abs(x):

    m = 4^k with probability p(k),    t ~ exponential with mean r m,    c ~ Poisson(t)

so that c is geometric for each k, and the rate to reckon with is the mean of t, given y:

    E(t | y) = sum over k, c of P(k, c | y) (c + 1) r m / (r m + 1)

Most words of public text never occur in a private one, some a thousand times as often as expected: the p(k) are those
under which all the noisy counts together are most probable, found by EM (Kiefer and Wolfowitz 1956; Efron 2014, "Two
modeling strategies for empirical Bayes estimation"). A large count then decides alone, a small one counts as much as
noise and the rarity of the word leave of it, and words without a count share what is left. All this sees no count but
the noisy ones, so it costs no privacy.
"""

import math

import numpy as np

_NEGLIGIBLE = 20.0
"""Noise is reckoned with until it is this improbable beside none: exp(-20)."""


def noise(number: int, ratio: float, stream: bytes) -> np.ndarray:
    """``(number,)`` int64, from ``16 * number`` secret bytes: the difference of two geometric numbers."""
    drawn = np.frombuffer(stream, dtype="<u8").reshape(2, number)
    uniform = ((drawn >> 11).astype(np.float64) + 0.5) / 2.0**53
    steps = np.floor(np.log(uniform) / math.log(ratio)).astype(np.int64)
    return steps[0] - steps[1]


def threshold(number: int, ratio: float) -> int:
    """The least T that noise alone reaches for one of ``number`` words or fewer: P(X >= T) is ratio^T / (1 + ratio)."""
    return max(1, math.ceil(math.log((1 + ratio) / max(1, number)) / math.log(ratio)))


_FACTORS = 4.0 ** np.arange(-6, 11)
"""The m."""
_STEPS = 100


def posterior_rates(noisy: np.ndarray, expected: np.ndarray, ratio: float) -> np.ndarray:
    """``(W,)`` float64 E(t | y) in places, by noisy counts ``(W,)`` int64 and rates ``(W,)`` expected without them, all
    above 0.

    ``ratio``: that of the noise's geometric distribution, between 0 and 1.
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
    """``(W,)`` log P(y), up to a constant, and ``(W,)`` E(t | y), where t is exponential with the mean ``rate``.

    ``noise``: log-probability of each distance of y and c; looked at are counts ``around`` y, or the least ones.
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
