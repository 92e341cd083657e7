"""Rates by noisy counts: right on the average for words that look alike, with nothing told but noisy counts."""

import itertools
import math

import numpy as np
import pytest

from tasks.filling.frequencies.noise import posterior_rates


def simulated(ratio, batches=1, words=60_000):
    """True rates, rates expected without counts, and noisy counts: nine tenths of the words hardly occur."""
    random = np.random.default_rng(1)
    expected = np.exp(random.normal(-4, 2, words))
    factor = random.choice([0.02, 1.0, 200.0], words, p=[0.9, 0.08, 0.02])
    rates = random.exponential(expected * factor)
    one_side, other = random.geometric(1 - ratio, (2, batches, words)).sum(axis=1)
    return rates, expected, random.poisson(rates) + one_side - other


def test_words_with_the_same_estimate_have_that_rate_on_the_average():
    for ratio, batches in [(math.exp(-4), 1), (math.exp(-1), 1), (math.exp(-3), 6)]:
        rates, expected, noisy = simulated(ratio, batches)
        estimate = posterior_rates(noisy, expected, ratio, batches)
        order = np.argsort(estimate)
        # Rare words together, common ones in finer parts.
        edges = np.searchsorted(estimate[order], [0, 0.1, 0.5, 2, 8, 32, np.inf])
        for first, last in itertools.pairwise(edges):
            some = order[first:last]
            assert len(some) > 100
            # Rates of some hundredths of a place leave hardly a trace in the counts of one text.
            assert estimate[some].mean() == pytest.approx(rates[some].mean(), rel=0.25, abs=1e-2)
        assert estimate.sum() == pytest.approx(rates.sum(), rel=0.05)


def test_estimates_are_nearer_than_counts_and_than_expectation():
    ratio = math.exp(-2)
    rates, expected, noisy = simulated(ratio)
    estimate = posterior_rates(noisy, expected, ratio)

    def error(other):
        return np.abs(other - rates).sum()

    assert error(estimate) < 0.6 * error(np.maximum(noisy, 0))
    assert error(estimate) < 0.6 * error(expected)


def test_a_large_count_decides_alone():
    noisy = np.array([0] * 5000 + [100, 1000])
    expected = np.full(len(noisy), 0.01)
    estimate = posterior_rates(noisy, expected, math.exp(-2))
    assert estimate[-2:] == pytest.approx([100, 1000], rel=0.03)
    assert estimate[0] < 0.01


def test_counts_below_nothing_are_no_trouble():
    estimate = posterior_rates(np.array([-50, -3, 0, 2]), np.array([1e-9, 0.5, 3.0, 1e5]), math.exp(-0.1))
    assert np.isfinite(estimate).all()
    assert (estimate > 0).all()
