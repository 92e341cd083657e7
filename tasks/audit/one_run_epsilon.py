"""A lower bound on a model's epsilon from one training run (Steinke, Nasr and Jagielski 2023, arXiv:2305.08846).

A fair coin for each canary decides whether it is in the training text. From the model alone an attacker guesses some of
the coins. Under (epsilon, 0)-differential privacy, with a canary as the unit, he learns each coin with probability
e^epsilon / (1 + e^epsilon) at most. Many right guesses refute a small epsilon.
"""

import math

import numpy as np

from tasks.audit.figure import Figure
from tasks.audit.resampling import scores_of

_STEPS = 50
"""Steps of the bisection: the bound is exact to 2^-50 of its first upper end."""


def epsilon_lower_bound(correct: int, guesses: int, confidence: float = 0.95, prior: float = 0.5) -> float:
    """The largest epsilon (nats) that ``correct`` of ``guesses`` refute at this confidence; 0 if they refute none.

    An epsilon is refuted if so many right guesses have a probability of at most 1 - ``confidence`` under it: the number
    of right ones is Binomial(guesses, q e^epsilon / (q e^epsilon + 1 - q)), with q the probability of each guess
    without the output (``prior``). Valid if the number of guesses was fixed before the scores were seen.
    """
    from scipy.special import bdtrc, expit, logit

    def refuted(epsilon: float) -> bool:
        return float(bdtrc(correct - 1, guesses, float(expit(epsilon + logit(prior))))) <= 1 - confidence

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def guess_and_bound(
    scores: np.ndarray, included: np.ndarray, guesses: int, attacker: str, seed: int, confidence: float = 0.95
) -> Figure:
    """The bound (nats) from ``guesses``: half of them "in", at the highest scores, half "out", at the lowest.

    ``scores`` (m,): higher where a canary is more likely to have been in; ``included`` (m,): its coins. Ties are broken
    at random, so that the order of the canaries has no effect. Fix the number of guesses before the scores are seen.
    ``blind`` is 0: coins are fair, and only the model depends on them.
    """
    canaries = len(scores)
    by_lot = np.random.default_rng(seed).permutation(canaries)
    ranked = by_lot[np.argsort(scores_of(scores, "canaries")[by_lot], kind="stable")]  # the worst first
    coins = np.asarray(included, dtype=bool)[ranked]
    out = guesses // 2
    correct = int(np.count_nonzero(~coins[:out]) + np.count_nonzero(coins[canaries - (guesses - out) :]))
    bound = epsilon_lower_bound(correct, guesses, confidence)
    most = epsilon_lower_bound(guesses, guesses, confidence)
    described = (
        f"{attacker}; lower bound at {100 * confidence:g} % by {guesses:,} guesses about {canaries:,} canaries, "
        f"which can show {math.floor(100 * most) / 100:g} at most"
    )
    return Figure(bound, None, described, 0.0, canaries)
