"""Exposure of canaries (Carlini et al. 2019, "The Secret Sharer"): the rank of each among candidates, in bits.

A canary is planted into the training text; its references are candidates of the same template that are not. Scores are
calibrated: log-probability under the audited model less log-probability under the pretrained model. They are higher
where a candidate is more likely to have been seen. All exposures are in bits.
"""

import math
from collections.abc import Sequence

import numpy as np

from tasks.audit.figure import Figure
from tasks.audit.resampling import bootstrap, interval_of, scores_of

_RESOLUTION = 52.0
"""Bits. A survival function below a double's resolution shows the shape of the fitted tail only."""

Group = tuple[np.ndarray, np.ndarray]
"""Scores of canaries (C,) and references (R,) of one template, or of one family and count."""


def exposures(canaries: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Bits (C,) of canaries (C,) among references (R,): log2(R + 1) - log2(rank), as the paper defines it.

    The rank is among the canary itself and its references, from 1 for the highest score: 0 bits to log2(R + 1). A tied
    canary has the mean exposure of the tied ranks, which is the average over random tie-breaking. If all scores are
    equal, exposure is that of a model that learned nothing.
    """
    ordered = np.sort(scores_of(references, "references"))
    canaries = scores_of(canaries, "canaries")
    above = len(ordered) - np.searchsorted(ordered, canaries, side="right")
    not_below = len(ordered) - np.searchsorted(ordered, canaries, side="left")
    sums = np.concatenate([[0.0], np.cumsum(np.log2(np.arange(1, len(ordered) + 2)))])  # of log2(k), k = 1..n
    return math.log2(len(ordered) + 1) - (sums[not_below + 1] - sums[above]) / (not_below - above + 1)


def extrapolated_exposures(canaries: np.ndarray, references: np.ndarray, most: float) -> np.ndarray:
    """Bits (C,): -log2 of the share of candidates above a canary, by a skew normal fitted to the references.

    This is the paper's approximation by a model of the distribution. It separates canaries above every reference.
    ``most``: log2 of the number of candidates, an upper bound, itself 52 at most. If all references are equal, as for
    a model that learned nothing, no distribution can be fitted: then these are ``exposures``.
    """
    from scipy.stats import skewnorm

    references = scores_of(references, "references")
    if np.ptp(references) == 0:
        return exposures(canaries, references)
    fitted = skewnorm.fit(references)
    survival = skewnorm.sf(scores_of(canaries, "canaries"), *fitted)
    return -np.log2(np.maximum(survival, 2.0 ** -min(most, _RESOLUTION)))


def null_exposure(references: int) -> float:
    """Expected bits of a model that learned nothing: the mean of log2(R + 1) - log2(k), k uniform on 1 to R + 1."""
    return float((math.log2(references + 1) - np.log2(np.arange(1, references + 2))).mean())


def mean_exposure(
    groups: Sequence[Group],
    attacker: str,
    samples: int,
    confidence: float,
    seed: int,
    spaces: Sequence[float] | None = None,
) -> Figure:
    """Mean bits over the canaries of all groups, each ranked among the references of its own group.

    ``spaces``: log2 of the number of candidates of each group (``extrapolated_exposures``); without them exposure is by
    rank. The interval resamples canaries: it covers other canaries of the kind, in this model. ``blind`` is for uniform
    ranks. If every canary is above all references, the value by rank and both ends are log2(R + 1), a lower bound.
    """
    found = (
        [exposures(*group) for group in groups]
        if spaces is None
        else [extrapolated_exposures(*group, space) for group, space in zip(groups, spaces, strict=True)]
    )
    bits = np.concatenate([np.empty(0), *found])
    if not len(bits):
        return Figure(None, None, attacker)
    blind = sum(len(canaries) * null_exposure(len(references)) for canaries, references in groups) / len(bits)
    value = float(bits.mean())
    means = bootstrap(lambda counts: counts @ bits / len(bits), len(bits), samples, seed)
    interval = interval_of(value, means, len(bits), confidence, (float(bits.min()), float(bits.max())))
    return Figure(value, interval, attacker, blind, len(bits))
