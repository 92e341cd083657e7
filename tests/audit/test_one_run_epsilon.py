"""The bound of epsilon from one run: known values, and randomised response, whose epsilon is known."""

import numpy as np
import pytest
from scipy.stats import binom

from tasks.audit.one_run_epsilon import epsilon_lower_bound, guess_and_bound

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
    bounds = np.array([in_one_run(epsilon, seed).value for seed in range(1000)])
    assert np.mean(bounds > epsilon) <= 0.065  # 5 % and two standard errors
    assert np.median(bounds) > 0.75 * epsilon - 0.1  # and it is not far below


def test_the_best_scores_are_guessed_in_and_the_worst_out():
    included = np.arange(CANARIES) % 2 == 0
    scores = np.where(included, 1.0, -1.0) * np.arange(1, CANARIES + 1)
    scores[400:] = 0.0  # nothing is said of these
    figure = guess_and_bound(scores, included, GUESSES, "loss ratio", seed=0)
    assert figure.value == pytest.approx(4.194, abs=6e-4)
    assert (figure.interval, figure.blind, figure.places) == (None, 0.0, CANARIES)
    assert figure.attacker == (
        "loss ratio; lower bound at 95 % by 200 guesses about 1,000 canaries, which can show 4.19 at most"
    )
    assert guess_and_bound(-scores, included, GUESSES, "loss ratio", seed=0).value == 0.0
