"""Exposure of canaries (Carlini et al. 2019, "The Secret Sharer"): how far up a list of candidates each one stands.

A canary is planted into the training text; its references are candidates of the same template that are not. Scores are
calibrated, higher where a candidate is more likely to have been seen: its log-probability under the audited model less
that under the pretrained one. All exposures are in bits.
"""

import math
from collections.abc import Sequence

import numpy as np

from tasks.audit.figure import Figure
from tasks.audit.resampling import interval_of, scores_of
from tasks.language_model.evaluation.bootstrap import resample_counts

_RESOLUTION = 52.0
"""Bits. A survival function below a double's resolution is the shape of the fitted tail and no measurement."""

Group = tuple[np.ndarray, np.ndarray]
"""Scores of canaries (C,) and of their references (R,): those of one template, or of one family and count."""


def exposures(canaries: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Bits (C,) of canaries (C,) among references (R,): log2(R + 1) - log2(rank), as the paper defines it.

    The rank is that among the canary itself and its references, 1 is the highest score: from 0 bits to log2(R + 1).
    Tied with references, a canary has the mean of the exposures of the ranks that they share, which is what breaking
    the tie by lot gives on average: where all scores are equal, exposure is that of nothing learned.
    """
    ordered = np.sort(scores_of(references, "references"))
    canaries = scores_of(canaries, "canaries")
    above = len(ordered) - np.searchsorted(ordered, canaries, side="right")
    not_below = len(ordered) - np.searchsorted(ordered, canaries, side="left")
    sums = np.concatenate([[0.0], np.cumsum(np.log2(np.arange(1, len(ordered) + 2)))])  # of log2(k), k = 1..n
    return math.log2(len(ordered) + 1) - (sums[not_below + 1] - sums[above]) / (not_below - above + 1)


def extrapolated_exposures(canaries: np.ndarray, references: np.ndarray, most: float) -> np.ndarray:
    """Bits (C,): -log2 of the share of candidates above a canary, by a skew normal fitted to the references.

    The paper's approximation by a model of the distribution. It tells canaries apart that are above every reference.
    ``most``: log2 of how many candidates there are, since none is above more; 52 at most. Equal references, as of a
    model that learned nothing, have no distribution: then these are ``exposures``.
    """
    from scipy.stats import skewnorm

    references = scores_of(references, "references")
    if np.ptp(references) == 0:
        return exposures(canaries, references)
    fitted = skewnorm.fit(references)
    survival = skewnorm.sf(scores_of(canaries, "canaries"), *fitted)
    return -np.log2(np.maximum(survival, 2.0 ** -min(most, _RESOLUTION)))


def null_exposure(references: int, canaries: int, confidence: float) -> tuple[float, tuple[float, float]]:
    """Bits that nothing learned gives: expected value, and the interval of the mean of so many canaries.

    Ranks are uniform on 1 to R + 1, so exposure is nearly exponential with mean and deviation 1 / ln 2 = 1.44. The mean
    of C is taken as a gamma variate of the same mean and variance. Canaries share their references: by how these happen
    to lie, all exposures vary together, which adds (C - 1) / (C R) variances of one canary to the 1 / C.
    """
    from scipy.special import gammaincinv

    mean, variance = _null_moments(references)
    variance *= 1 / canaries + (canaries - 1) / (canaries * references)
    shape = mean**2 / variance
    low, high = gammaincinv(shape, [(1 - confidence) / 2, (1 + confidence) / 2]) * mean / shape
    return mean, (float(low), float(high))


def _null_moments(references: int) -> tuple[float, float]:
    """Mean and variance of log2(R + 1) - log2(k), k uniform on 1 to R + 1."""
    bits = math.log2(references + 1) - np.log2(np.arange(1, references + 2))
    return float(bits.mean()), float(bits.var())


def mean_exposure(
    groups: Sequence[Group],
    attacker: str,
    samples: int,
    confidence: float,
    seed: int,
    spaces: Sequence[float] | None = None,
) -> Figure:
    """Mean bits over the canaries of all groups, each ranked among the references of its own group.

    ``spaces``: log2 of how many candidates each group has (``extrapolated_exposures``); without them exposure is by
    rank. The interval resamples canaries: it says what other canaries of the kind would have, in this model. ``blind``
    is what uniform ranks give. By rank, where every canary is above all references, both ends are log2(R + 1), and the
    truth is that or more.
    """
    found = (
        [exposures(*group) for group in groups]
        if spaces is None
        else [extrapolated_exposures(*group, space) for group, space in zip(groups, spaces, strict=True)]
    )
    bits = np.concatenate([np.empty(0), *found])
    if not len(bits):
        return Figure(None, None, attacker)
    blind = sum(len(canaries) * _null_moments(len(references))[0] for canaries, references in groups) / len(bits)
    value = float(bits.mean())
    means = np.concatenate([counts @ bits / len(bits) for counts in resample_counts(len(bits), samples, seed)])
    interval = interval_of(value, means, len(bits), confidence, (float(bits.min()), float(bits.max())))
    return Figure(value, interval, attacker, blind, len(bits))
