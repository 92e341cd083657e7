"""A lower bound of a model's epsilon from one training run (Steinke, Nasr and Jagielski 2023).

"Privacy Auditing with One (1) Training Run", arXiv:2305.08846. Each of m canaries is in the training text or not, by a
fair coin of its own. From the model alone an attacker guesses some of the coins and says nothing of the others. Under
(epsilon, 0)-differential privacy, with a canary as the unit, no attacker has more right guesses than one who is told
each coin with probability e^epsilon / (1 + e^epsilon): many right guesses refute a small epsilon.
"""

import math

import numpy as np

from tasks.audit.figure import Figure
from tasks.audit.resampling import scores_of

_STEPS = 50
"""Of the bisection: the bound is exact to 2^-50 of its first upper end."""


def epsilon_lower_bound(
    correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The largest epsilon (nats) that ``correct`` of ``guesses`` refute at this confidence; 0 where they refute none.

    Refuted is an epsilon under which so many right guesses have a probability of at most 1 - ``confidence``
    (``p_value``). Valid where the number of guesses was fixed before the scores were seen.
    """

    def refuted(epsilon: float) -> bool:
        return p_value(correct, guesses, canaries, epsilon, delta) <= 1 - confidence

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """Probability, at most, of ``correct`` or more right guesses under (epsilon, delta)-differential privacy.

    With B ~ Binomial(r, e^epsilon / (1 + e^epsilon)), v right of r guesses and m canaries, as the code of the paper's
    appendix D has it: P[B >= v] + 2 m delta max over i = 1..v of P[v > B >= v - i] / i.
    """
    from scipy.special import bdtrc, expit

    accuracy = float(expit(epsilon))

    def at_least(right: np.ndarray) -> np.ndarray:
        return bdtrc(right - 1, guesses, accuracy)

    tail = float(at_least(np.array(correct)))
    if not delta or not correct:
        return tail
    fewer = np.arange(1, correct + 1)
    slack = float(np.max((at_least(correct - fewer) - tail) / fewer))
    return min(1.0, tail + 2 * canaries * delta * slack)


def guess_and_bound(
    scores: np.ndarray,
    included: np.ndarray,
    guesses: int,
    attacker: str,
    seed: int,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Figure:
    """The bound (nats) by an attacker who guesses half of ``guesses`` in, at the best scores, half out, at the worst.

    ``scores`` (m,) are higher where a canary is more likely to have been in; ``included`` (m,) are its coins. Equal
    scores are told apart by lot, so that the order of the canaries tells nothing. The number of guesses has to be fixed
    before the scores are seen. ``blind`` is 0: coins are fair, and nothing but the model depends on them.
    """
    canaries = len(scores)
    by_lot = np.random.default_rng(seed).permutation(canaries)
    ranked = by_lot[np.argsort(scores_of(scores, "canaries")[by_lot], kind="stable")]  # the worst first
    coins = np.asarray(included, dtype=bool)[ranked]
    out = guesses // 2
    correct = int(np.count_nonzero(~coins[:out]) + np.count_nonzero(coins[canaries - (guesses - out) :]))
    bound = epsilon_lower_bound(correct, guesses, canaries, delta, confidence)
    most = epsilon_lower_bound(guesses, guesses, canaries, delta, confidence)
    told = (
        f"{attacker}; lower bound at {100 * confidence:g} % by {guesses:,} guesses about {canaries:,} canaries, "
        f"which can show {math.floor(100 * most) / 100:g} at most"
    )
    return Figure(bound, None, told, 0.0, canaries)
