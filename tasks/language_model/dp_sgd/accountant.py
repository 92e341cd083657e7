"""How much privacy DP-SGD spends: Rényi differential privacy of the subsampled Gaussian mechanism.

A step takes each unit with probability q, adds up the clipped gradients of those that were taken, and adds Gaussian
noise of sigma times the clipping norm. With mu0 = N(0, sigma²) and mu1 = N(1, sigma²) its divergence of order alpha is

    RDP(alpha) = log A(alpha) / (alpha - 1),    A(alpha) = E over z ~ mu0 of ((1 - q) + q mu1(z) / mu0(z))^alpha

(Mironov, Talwar and Zhang 2019, "Rényi differential privacy of the sampled Gaussian mechanism", theorems 4 and 5). The
integral is taken by the trapezoidal rule, for any order; over steps RDP adds up, and becomes epsilon by

    epsilon = RDP(alpha) + log((alpha - 1) / alpha) - (log delta + log alpha) / (alpha - 1)

(Canonne, Kamath and Steinke 2020, proposition 12), the smallest over ``ORDERS``. Neighbours differ by one unit that is
added or taken away.
"""

import math

import numpy as np

from tasks.errors import ParameterError

ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 64), 128, 256, 512)
"""Those that Opacus tries, and three more for small epsilons."""
_REACH, _STEPS = 12.0, 20
"""The integral goes so many standard deviations beyond 0 and alpha; so many points in the narrower of sigma, sigma²."""
_LEAST_NOISE, _MOST_NOISE = 0.25, 1000.0


def renyi_divergence(sampling_rate: float, noise_multiplier: float, order: float) -> float:
    """RDP of one step in nats; ``order`` above 1."""
    variance = noise_multiplier**2
    if sampling_rate == 1:
        return order / (2 * variance)
    step = min(noise_multiplier, variance) / _STEPS
    points = np.arange(-_REACH * noise_multiplier, order + _REACH * noise_multiplier, step)
    ratio = np.logaddexp(math.log1p(-sampling_rate), math.log(sampling_rate) + (2 * points - 1) / (2 * variance))
    logs = order * ratio - points**2 / (2 * variance)
    largest = logs.max()
    integral = largest + math.log(np.exp(logs - largest).sum() * step) - math.log(2 * math.pi * variance) / 2
    return max(0.0, float(integral)) / (order - 1)


def epsilon_spent(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """Epsilon of so many steps, at ``delta``."""
    found = (
        steps * renyi_divergence(sampling_rate, noise_multiplier, order)
        + math.log1p(-1 / order)
        - (math.log(delta) + math.log(order)) / (order - 1)
        for order in ORDERS
    )
    return max(0.0, min(found))


def noise_multiplier_for(epsilon: float, delta: float, sampling_rate: float, steps: int) -> float:
    """The smallest noise, to a thousandth of it, with which so many steps spend at most ``epsilon``.

    Raises ``ParameterError`` where none that is looked at is enough, or the least of it is more than enough.
    """
    low, high = _LEAST_NOISE, _MOST_NOISE
    if epsilon_spent(sampling_rate, high, steps, delta) > epsilon:
        raise ParameterError(
            f"epsilon {epsilon:g} at delta {delta:g} is not to be had in {steps} steps; give a larger epsilon, or "
            "fewer epochs"
        )
    if epsilon_spent(sampling_rate, low, steps, delta) <= epsilon:
        return low
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        if epsilon_spent(sampling_rate, middle, steps, delta) <= epsilon:
            high = middle
        else:
            low = middle
    return high
