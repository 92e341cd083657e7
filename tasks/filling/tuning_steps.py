"""What the trainings of fillers have in common: how the rates go with the steps, and the curve of the loss."""

import math
from collections.abc import Sequence

_CURVE_POINTS = 40


def rate_factor(step: int, steps: int, warm_up_share: float) -> float:
    """Factor of the peak rate in step ``step`` (from 0) of ``steps``: linear to 1, then linear to 0."""
    warm_up = max(1, round(warm_up_share * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return (steps - step) / max(1, steps - warm_up)


def loss_curve(losses: Sequence[float]) -> list[dict[str, float]]:
    """Mean loss of each of at most 40 stretches of steps."""
    size = math.ceil(len(losses) / _CURVE_POINTS)
    stretches = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [
        {"step": min((index + 1) * size, len(losses)), "loss": round(sum(stretch) / len(stretch), 4)}
        for index, stretch in enumerate(stretches)
    ]
