"""What the trainings of fillers have in common: how the rates go with the steps, and what a report says of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

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


def before_and_after(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    """Held-out numbers of a base and of what was tuned from it, as a report has them: ``base_held_out_loss`` beside
    ``held_out_loss``; both losses ``None`` where there was nothing to test on."""
    if before is None or after is None:
        return {"base_held_out_loss": None, "held_out_loss": None}
    counts = {name for name in after if name.endswith("words")}
    named = {f"base_{_held_out(name)}": value for name, value in before.items() if name not in counts}
    return named | {_held_out(name): value for name, value in after.items()}


def _held_out(name: str) -> str:
    return name.replace("valid_", "held_out_", 1)
