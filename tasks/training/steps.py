"""Taking the steps of a short training, each on a batch that is made when it is wanted."""

import math
from collections.abc import Callable

import torch
from tqdm import tqdm

from tasks.errors import ModelError

_LARGEST_GRADIENT = 1.0


def run_steps(
    optimiser: torch.optim.Optimizer,
    next_loss: Callable[[], torch.Tensor],
    steps: int,
    warm_up_share: float,
    *,
    name: str,
    remedy: str,
) -> list[float]:
    """Take all steps, and return the loss of each; ``next_loss`` is that of the next batch.

    The optimiser's groups come with their peak rates. ``name`` stands at the progress bar. Raises ``ModelError`` with
    the ``remedy`` where the loss stops being a number.
    """
    rates = [float(group["lr"]) for group in optimiser.param_groups]
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    losses: list[float] = []
    for step in tqdm(range(steps), desc=name, unit=" steps", disable=None):
        factor = _rate_factor(step, steps, warm_up_share)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        loss = next_loss()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise ModelError(f"the loss is no number at step {step + 1}; {remedy}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, _LARGEST_GRADIENT)
        optimiser.step()
        optimiser.zero_grad()
    return losses


def _rate_factor(step: int, steps: int, warm_up_share: float) -> float:
    """Factor of the peak rate in step ``step`` (from 0) of ``steps``: linear to 1, then linear to 0."""
    warm_up = max(1, round(warm_up_share * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return (steps - step) / max(1, steps - warm_up)
