"""Several n-gram models as one: at every word, the weighted mean of their probabilities.

The weights are those under which held-out text is most probable, found by expectation and maximisation (Jelinek and
Mercer 1980). The models stay apart, since a single back-off model cannot hold their mixture exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.ngram.backoff_model import BackoffModel
from tasks.language_model.vocabulary import MARKERS, SPECIAL_TOKENS

MOST_ROUNDS = 200
_CLOSE_ENOUGH = 1e-6
_MARKER_IDS = [SPECIAL_TOKENS.index(marker) for marker in MARKERS]


@dataclass(frozen=True)
class NgramMixture:
    """Models over the same vocabulary and their weights, which sum to 1."""

    models: Sequence[BackoffModel]
    weights: Sequence[float]

    def log_probabilities(self, text: EncodedText, targets: np.ndarray | None = None) -> np.ndarray:
        """Of each id of a text (N,), or of ``targets`` (N,) in their places, in nats; 0 at the start of a sentence."""
        each = [
            np.log(weight) + model.log_probabilities(text.tokens, text.offsets, targets)
            for model, weight in zip(self.models, self.weights, strict=True)
            if weight > 0
        ]
        mixed = np.logaddexp.reduce(each, axis=0)
        mixed[text.offsets[:-1]] = 0.0
        return mixed

    def marker_log_probabilities(self, text: EncodedText) -> np.ndarray:
        """Of all markers together in place of each id of a text (N,), in nats."""
        each = [self.log_probabilities(text, np.full(len(text.tokens), marker)) for marker in _MARKER_IDS]
        return np.logaddexp.reduce(each, axis=0)

    def mean_loss(self, text: EncodedText) -> float:
        """Nats a target."""
        return -float(self.log_probabilities(text)[text.is_target()].mean())


def weight_of_first(first: BackoffModel, second: NgramMixture, text: EncodedText) -> tuple[float, int]:
    """The weight of the first model under which a text is most probable, and after how many rounds it was found."""
    is_target = text.is_target()
    one = np.exp(first.log_probabilities(text.tokens, text.offsets)[is_target])
    other = np.exp(second.log_probabilities(text)[is_target])
    weight = 0.5
    for number in range(1, MOST_ROUNDS + 1):
        share = weight * one
        found = float((share / (share + (1 - weight) * other)).mean())
        if abs(found - weight) < _CLOSE_ENOUGH:
            return found, number
        weight = found
    return weight, MOST_ROUNDS
