"""Privacy accountant of DP-SGD, by Opacus: Rényi differential privacy of the subsampled Gaussian mechanism.

A step samples each unit with the sampling rate and sums the clipped gradients of the sampled units. It adds Gaussian
noise of ``noise_multiplier`` times the clipping norm (Mironov, Talwar and Zhang 2019). Over steps the divergences add
up. Proposition 12 of Canonne, Kamath and Steinke (2020) converts them to epsilon, the smallest over ``ORDERS``.
Neighbours differ by one added or removed unit.
"""

import math
import warnings

from tasks.errors import ParameterError

ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 64), 128, 256, 512)
"""Rényi orders: the ones of Opacus, and three more for small epsilons."""
_LEAST_NOISE, _MOST_NOISE = 0.25, 1000.0


def epsilon_spent(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> float:
    """The epsilon of this many steps, at ``delta``."""
    from opacus.accountants.analysis import rdp

    spent = rdp.compute_rdp(q=sampling_rate, noise_multiplier=noise_multiplier, steps=steps, orders=ORDERS)
    with warnings.catch_warnings():
        # The best order may be the largest one; a larger order would give a smaller epsilon.
        warnings.filterwarnings("ignore", "Optimal order is the (largest|smallest) alpha")
        epsilon, _ = rdp.get_privacy_spent(orders=ORDERS, rdp=spent, delta=delta)
    return max(0.0, float(epsilon))


def noise_multiplier_for(epsilon: float, delta: float, sampling_rate: float, steps: int) -> float:
    """The smallest noise multiplier, to 0.1 %, with which this many steps spend at most ``epsilon``.

    Returns the least noise considered where that is enough. Raises ``ParameterError`` where the most is not.
    """
    low, high = _LEAST_NOISE, _MOST_NOISE
    if epsilon_spent(sampling_rate, high, steps, delta) > epsilon:
        raise ParameterError(
            f"epsilon {epsilon:g} at delta {delta:g} cannot be reached in {steps} steps; give a larger epsilon, or "
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
