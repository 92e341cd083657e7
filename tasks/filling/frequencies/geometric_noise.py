"""Noise in whole numbers: P(X = k) proportional to ratio^abs(k) (Ghosh, Roughgarden and Sundararajan 2009).

Counts of a corpus that grows are sums of several sets of counts, each with noise of its own (``released_counts``): the
noise is then a sum of n such numbers, the difference of two that are negative binomial.
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


def log_probabilities(ratio: float, batches: int, farthest: int) -> np.ndarray:
    """``(R + farthest + 1,)`` log P(X = k) for k from 0, up to a constant, X the sum of the noise of ``batches``
    counts; R is where it becomes negligible."""
    if batches == 1:
        return np.arange(reach(ratio, 1) + farthest + 1) * math.log(ratio)
    width = reach(ratio, batches) + farthest + 1
    # As wide again, so that what is cut off is nothing even at the end.
    steps = np.arange(1, 2 * width)
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratio * (steps + batches - 1) / steps))])
    one_side = np.exp(logs - logs.max())
    both = np.correlate(one_side, one_side, "full")[len(one_side) - 1 :][:width]
    return np.asarray(np.log(np.maximum(both / both[0], np.finfo(np.float64).tiny)))


def reach(ratio: float, batches: int) -> int:
    """How far the noise goes on either side until it is negligible: at most, where there are several batches."""
    one = math.ceil(_NEGLIGIBLE / -math.log(ratio))
    if batches == 1:
        return one
    # Of a normal number with the sum's variance, and the tail of a single one besides.
    return one + math.ceil(math.sqrt(2 * _NEGLIGIBLE * batches * 2 * ratio) / (1 - ratio))


def threshold(number: int, ratio: float, batches: int = 1) -> int:
    """The least T that noise alone reaches for one of ``number`` words or fewer.

    Of one set of counts P(X >= T) is ratio^T / (1 + ratio).
    """
    if batches == 1:
        return max(1, math.ceil(math.log((1 + ratio) / max(1, number)) / math.log(ratio)))
    probabilities = np.exp(log_probabilities(ratio, batches, 0))
    probabilities /= probabilities[0] + 2 * probabilities[1:].sum()
    tail = np.cumsum(probabilities[::-1])[::-1]  # P(X >= k)
    return max(1, int(np.count_nonzero(number * tail > 1)))
