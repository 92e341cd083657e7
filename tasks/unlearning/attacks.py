"""Attacks on a model that has forgotten, to test whether the text is gone or hidden."""

from typing import TYPE_CHECKING

import torch

from tasks.language_model.learners import Learner, MarkedText
from tasks.unlearning.steps import trained_on

if TYPE_CHECKING:
    from tasks.unlearning.settings import UnlearningSettings

_BATCH_TOKENS = 280
_GROUP = 64
_LARGEST = 7
"""Largest whole number of four bits with its sign."""


def relearned(model: Learner, known: MarkedText, settings: "UnlearningSettings", seed: int) -> Learner:
    """Train on the attacker's lines for a few steps (Hu et al. 2025), to test whether others come back."""
    return trained_on(model, known, settings.relearning_steps, settings.relearning_rate, _BATCH_TOKENS, seed)


def four_bits(model: Learner) -> Learner:
    """Round weights to four bits, in groups of 64 with one scale each (Zhang et al. 2025)."""
    found = model.copy()
    with torch.no_grad():
        for weights in found.network.parameters():
            if weights.dim() > 1 and weights.numel() % _GROUP == 0:
                groups = weights.view(-1, _GROUP)
                scale = groups.abs().amax(1, keepdim=True).clamp(min=1e-12) / _LARGEST
                groups.copy_((groups / scale).round() * scale)
    return found
