"""What is done to a model that has forgotten, to see whether the text is gone or hidden."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from tasks.unlearning.request import MarkedText
from tasks.unlearning.steps import trained_on

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary
    from tasks.unlearning.settings import UnlearningSettings

_BATCH_TOKENS = 280
_GROUP = 64
_LARGEST = 7
"""Of a whole number of four bits and its sign."""


@dataclass(frozen=True)
class Attacker:
    """What an attacker of a released model has."""

    known: Sequence[str]
    """Lines that were to be forgotten, a few of many."""
    alike: Sequence[str]
    """Lines of the same form that nobody was trained on."""
    vocabulary: "Vocabulary"
    settings: "UnlearningSettings"
    seed: int

    def trained(self, model: "TransformerLanguageModel", lines: Sequence[str]) -> "TransformerLanguageModel":
        """A few steps on some lines."""
        settings = self.settings
        marked = MarkedText.of(lines, self.vocabulary)
        return trained_on(model, marked, settings.relearning_steps, settings.relearning_rate, _BATCH_TOKENS, self.seed)


def relearned(model: "TransformerLanguageModel", attacker: Attacker) -> "TransformerLanguageModel":
    """Trained on a few of the lines that were to be forgotten (Hu et al. 2025): do the others come back?"""
    return attacker.trained(model, attacker.known)


def fresh(model: "TransformerLanguageModel", attacker: Attacker) -> "TransformerLanguageModel":
    """The same with lines of the form alone, of which none was to be forgotten."""
    return attacker.trained(model, attacker.alike)


def four_bits(model: "TransformerLanguageModel", attacker: Attacker) -> "TransformerLanguageModel":
    """Weights rounded to four bits, in groups of 64 with a scale each (Zhang et al. 2025)."""
    found = copy.deepcopy(model)
    with torch.no_grad():
        for weights in found.parameters():
            if weights.dim() > 1 and weights.numel() % _GROUP == 0:
                groups = weights.view(-1, _GROUP)
                scale = groups.abs().amax(1, keepdim=True).clamp(min=1e-12) / _LARGEST
                groups.copy_((groups / scale).round() * scale)
    return found


ATTACKS: Mapping[str, Callable[["TransformerLanguageModel", Attacker], "TransformerLanguageModel"]] = {
    "relearned": relearned,
    "fresh": fresh,
    "four_bits": four_bits,
}
