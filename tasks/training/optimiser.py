"""AdamW and the learning rate of each step."""

import math
from typing import Literal, Protocol

from torch import nn
from torch.optim import AdamW

ADAM_BETAS = (0.9, 0.98)


class OptimisationSettings(Protocol):
    """Settings that are common to the trainings with checkpoints."""

    learning_rate: float
    warmup_share: float
    weight_decay: float
    gradient_clip: float
    validate_every_steps: int
    precision: Literal["auto", "float32", "bfloat16"]


def make_optimiser(model: nn.Module, settings: OptimisationSettings) -> AdamW:
    """AdamW; biases and norms do not decay."""
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return AdamW(groups, lr=settings.learning_rate, betas=ADAM_BETAS, fused=True)


def rate_factor(step: int, total_steps: int, warmup_share: float) -> float:
    """Share of the peak learning rate at a step (from 0): linear up to 1, then half a cosine down to 0."""
    warmup = round(warmup_share * total_steps)
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total_steps - warmup)))
