"""What a model of any kind says of the targets of a text."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TargetScores:
    """What a model says of the targets of a ``ReferenceText``, in its order: a sentence's words, then its end."""

    log_probability: np.ndarray
    """Of each target (N,), in nats (float64)."""
    known: np.ndarray
    """Whether the target is in the vocabulary (N,), bool; all are where a model can spell every word."""
    marker_log_probability: np.ndarray | None
    """Of all markers together in place of each target (N,), in nats (float64); ``None``: the model knows none."""

    def without_markers(self) -> np.ndarray:
        """Log-probabilities (N,) with the markers' share of the probability given to all other tokens."""
        if self.marker_log_probability is None:
            return self.log_probability
        return self.log_probability - np.log1p(-np.exp(self.marker_log_probability))
