"""What is done to a model that has forgotten, to see whether the text is gone or hidden."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from tasks.language_model.learners import Learner, MarkedText
from tasks.unlearning.steps import trained_on

if TYPE_CHECKING:
    from tasks.unlearning.settings import UnlearningSettings

_BATCH_TOKENS = 280
_GROUP = 64
_LARGEST = 7
"""Of a whole number of four bits and its sign."""


@dataclass(frozen=True)
class Attacker:
    """What an attacker of a released model has."""

    settings: "UnlearningSettings"
    seed: int
    known: MarkedText | None = None
    """Lines that were to be forgotten, a few of many."""
    alike: MarkedText | None = None
    """Lines of the same form that nobody was trained on."""
    kept: MarkedText | None = None
    """Lines of the same corpus, none of which was to be forgotten."""

    def trained(self, model: Learner, lines: MarkedText | None) -> Learner:
        """A few steps on some lines."""
        assert lines is not None, "the attacker has these lines"
        settings = self.settings
        rest = settings.relearning_steps, settings.relearning_rate, _BATCH_TOKENS, self.seed
        return trained_on(model, lines, *rest)


def relearned(model: Learner, attacker: Attacker) -> Learner:
    """Trained on a few of the lines that were to be forgotten (Hu et al. 2025): do the others come back?"""
    return attacker.trained(model, attacker.known)


def fresh(model: Learner, attacker: Attacker) -> Learner:
    """The same with lines of the form alone, of which none was to be forgotten."""
    return attacker.trained(model, attacker.alike)


def continued(model: Learner, attacker: Attacker) -> Learner:
    """The same with ordinary lines: a user who merely goes on training."""
    return attacker.trained(model, attacker.kept)


def four_bits(model: Learner, attacker: Attacker) -> Learner:
    """Weights rounded to four bits, in groups of 64 with a scale each (Zhang et al. 2025)."""
    found = model.copy()
    with torch.no_grad():
        for weights in found.network.parameters():
            if weights.dim() > 1 and weights.numel() % _GROUP == 0:
                groups = weights.view(-1, _GROUP)
                scale = groups.abs().amax(1, keepdim=True).clamp(min=1e-12) / _LARGEST
                groups.copy_((groups / scale).round() * scale)
    return found


ATTACKS: Mapping[str, Callable[[Learner, Attacker], Learner]] = {
    "relearned": relearned,
    "fresh": fresh,
    "continued": continued,
    "four_bits": four_bits,
}
