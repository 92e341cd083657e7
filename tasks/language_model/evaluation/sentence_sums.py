"""Log-probabilities and how many targets they are of: added up first, divided once."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class LogProbabilitySum:
    """A sum over targets; sums of parts of a text, from several processes or files, add up to that of the whole."""

    log_probability: float = 0.0
    """In nats."""
    targets: int = 0

    def __add__(self, other: "LogProbabilitySum") -> "LogProbabilitySum":
        return LogProbabilitySum(self.log_probability + other.log_probability, self.targets + other.targets)

    @property
    def mean(self) -> float | None:
        """Mean log-probability of a target in nats; ``None`` without targets."""
        return self.log_probability / self.targets if self.targets else None

    @property
    def perplexity(self) -> float | None:
        """exp of the mean negative log-probability; ``None`` without targets, or where it is beyond any number."""
        mean = self.mean
        return math.exp(-mean) if mean is not None and -mean < 700 else None


@dataclass(frozen=True)
class SentenceSums:
    """The same for every sentence of a text (S,)."""

    targets: np.ndarray
    """Counts (int64)."""
    log_probability: np.ndarray
    """Sums in nats (float64)."""

    @classmethod
    def of_targets(
        cls, log_probability: np.ndarray, sentence: np.ndarray, sentences: int, counted: np.ndarray | None = None
    ) -> "SentenceSums":
        """Sums by sentence of the targets that are ``counted`` (N,), all of them by default."""
        if counted is not None:
            log_probability, sentence = log_probability[counted], sentence[counted]
        return cls(
            np.bincount(sentence, minlength=sentences).astype(np.int64),
            np.bincount(sentence, weights=log_probability, minlength=sentences).astype(np.float64),
        )

    def __sub__(self, other: "SentenceSums") -> "SentenceSums":
        """What is left of each sentence without the targets of ``other``, which are among its own."""
        return SentenceSums(self.targets - other.targets, self.log_probability - other.log_probability)

    @property
    def total(self) -> LogProbabilitySum:
        """The sum over all sentences."""
        return LogProbabilitySum(float(self.log_probability.sum()), int(self.targets.sum()))
