"""Exposure: what nothing learned gives by simulation, both ends of the scale, and TensorFlow Privacy's formulas. And
the bound of epsilon from one run: known values, and randomised response, whose epsilon is known."""

import math

import numpy as np
import pytest
from scipy.stats import binom, skewnorm

from tasks.audit.exposure import exposures, extrapolated_exposures, mean_exposure, null_exposure
from tasks.audit.one_run_epsilon import epsilon_lower_bound, guess_and_bound
from tasks.audit.settings import AuditSettings
from tasks.errors import ModelError

SETTINGS = AuditSettings(bootstrap_samples=400)


def test_exposure_has_the_ends_of_its_scale_and_no_bits_for_equal_scores():
    references = np.arange(4095.0)
    highest, second, lowest = exposures(np.array([4095.0, 4093.5, -1.0]), references)
    assert (highest, second, lowest) == (12.0, 11.0, pytest.approx(0.0, abs=1e-9))
    (equal,) = exposures(np.zeros(1), np.zeros(4095))
    assert equal == pytest.approx(null_exposure(4095))
    assert extrapolated_exposures(np.zeros(1), np.zeros(4095), 52).tolist() == [equal]
    (shared,) = exposures(np.array([7.0]), np.array([9.0, 7.0, 1.0]))  # rank 2 or 3 of 4, by lot
    assert shared == pytest.approx(2 - (1 + math.log2(3)) / 2)
    with pytest.raises(ModelError, match="1 of 2 scores of canaries are not finite"):
        exposures(np.array([np.nan, 1.0]), np.zeros(9))


def test_canaries_of_a_model_that_learned_nothing_have_1_44_bits_on_average():
    drawn = np.random.default_rng(1)
    means = [exposures(drawn.random(40), drawn.random(4095)).mean() for _ in range(500)]
    assert np.mean(means) == pytest.approx(null_exposure(4095), abs=0.03)
    assert null_exposure(4095) == pytest.approx(1 / math.log(2), abs=0.01)


def test_exposures_are_those_of_tensorflow_privacy():
    """By its formulas: log2(R) - log2(1 + references below) and -log2 of the fitted cdf, both of perplexities."""
    drawn = np.random.default_rng(2)
    references, canaries = 20 + 3 * skewnorm.rvs(4, size=1000, random_state=drawn), drawn.normal(19, 3, size=30)
    ranks = 1 + (references[None] < canaries[:, None]).sum(axis=1)
    interpolated = np.log2(1000) - np.log2(ranks)
    extrapolated = -np.log2(skewnorm.cdf(canaries, *skewnorm.fit(references)))
    one_more = math.log2(1001) - math.log2(1000)  # the canary itself counts as a candidate here
    assert exposures(-canaries, -references) == pytest.approx(interpolated + one_more)
    assert extrapolated.max() > 10 + 1  # beyond what 1,000 references can show
    assert extrapolated_exposures(-canaries, -references, 60) == pytest.approx(np.minimum(extrapolated, 52), rel=1e-3)


def test_a_canary_beyond_any_tail_has_the_bits_of_its_form_or_of_a_double():
    references = np.random.default_rng(3).normal(size=4095)
    highest = np.array([1e6])
    assert [extrapolated_exposures(highest, references, most).tolist() for most in (33, 60)] == [[33.0], [52.0]]
    # Within the references both kinds of exposure say the same.
    inside = np.quantile(references, [0.1, 0.5, 0.9, 0.99])
    assert extrapolated_exposures(inside, references, 33) == pytest.approx(exposures(inside, references), abs=0.3)


def test_the_interval_of_a_mean_holds_the_truth_as_often_as_it_says():
    drawn = np.random.default_rng(5)
    references = drawn.normal(size=4095)
    truth = exposures(drawn.normal(2, 1, size=200_000), references).mean()
    figures = [
        mean_exposure([(drawn.normal(2, 1, size=40), references)], "rank", SETTINGS.model_copy(update={"seed": n}))
        for n in range(200)
    ]
    held = np.mean([figure.interval[0] <= truth <= figure.interval[1] for figure in figures])
    assert 0.91 < held < 0.98


# Epsilon by the canaries of one run ------------------------------------------------------------------------------

CANARIES, GUESSES = 1000, 200


def test_the_bound_has_known_values():
    for correct, guesses, bound in ((180, 200, 1.799), (200, 200, 4.194), (50, 50, 2.785), (100, 200, 0), (0, 0, 0)):
        assert epsilon_lower_bound(correct, guesses) == pytest.approx(bound, abs=6e-4)
    # It is the epsilon whose binomial tail is 5 %.
    bound = epsilon_lower_bound(170, GUESSES)
    assert binom.sf(169, GUESSES, np.exp(bound) / (1 + np.exp(bound))) == pytest.approx(0.05, abs=1e-9)


def in_one_run(epsilon: float, seed: int):
    """Randomised response: each coin is told right with probability e^epsilon / (1 + e^epsilon)."""
    drawn = np.random.default_rng(seed)
    included = np.sort(drawn.random(CANARIES) < 0.5)  # by order, which must tell nothing
    told = included ^ (drawn.random(CANARIES) > 1 / (1 + np.exp(-epsilon)))
    return guess_and_bound(told.astype(float), included, GUESSES, "response", seed)


@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_the_bound_is_above_the_truth_in_5_percent_of_runs_at_most(epsilon):
    bounds = np.array([in_one_run(epsilon, seed).value for seed in range(500)])
    assert np.mean(bounds > epsilon) <= 0.065  # 5 % and two standard errors
    assert np.median(bounds) > 0.75 * epsilon - 0.1  # and it is not far below


def test_the_best_scores_are_guessed_in_and_the_worst_out():
    included = np.arange(CANARIES) % 2 == 0
    scores = np.where(included, 1.0, -1.0) * np.arange(1, CANARIES + 1)
    scores[400:] = 0.0  # nothing is said of these
    figure = guess_and_bound(scores, included, GUESSES, "loss ratio", seed=0)
    assert figure.value == pytest.approx(4.194, abs=6e-4)
    assert guess_and_bound(-scores, included, GUESSES, "loss ratio", seed=0).value == 0.0
