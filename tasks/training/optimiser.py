"""AdamW, the learning rate of each step, and the arithmetic of products."""

import math
from typing import Literal, Protocol

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from tasks.torch_setup import has_bfloat16

ADAM_BETAS = (0.9, 0.98)


class OptimisationSettings(Protocol):
    """Settings of an optimisation that are common to all models, such as ``TrainingSettings`` of the language model."""

    learning_rate: float
    warmup_share: float
    weight_decay: float
    gradient_clip: float
    validate_every_steps: int
    precision: Literal["auto", "float32", "bfloat16"]


def make_optimiser(model: nn.Module, settings: OptimisationSettings, total_steps: int) -> tuple[AdamW, LambdaLR]:
    """AdamW with a linear warm-up and a cosine to zero; biases and norms do not decay."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimiser = AdamW(groups, lr=settings.learning_rate, betas=ADAM_BETAS, fused=True)
    return optimiser, LambdaLR(optimiser, lambda step: rate_factor(step, total_steps, settings.warmup_share))


def rate_factor(step: int, total_steps: int, warmup_share: float) -> float:
    """Share of the peak learning rate at a step (from 0): linear up to 1, then half a cosine down to 0."""
    warmup = round(warmup_share * total_steps)
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total_steps - warmup)))


def arithmetic_of(settings: OptimisationSettings) -> torch.dtype:
    """The data type of the wide products: the setting, or bfloat16 where the processor supports it."""
    bfloat16 = settings.precision == "bfloat16" or (settings.precision == "auto" and has_bfloat16())
    return torch.bfloat16 if bfloat16 else torch.float32
