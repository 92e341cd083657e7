"""Confidence intervals of perplexities by resampling sentences (Efron's percentile bootstrap).

A perplexity is exp(-(sum of log-probabilities) / (count of targets)). A resample draws as many sentences as there
are, with replacement, and is a ratio of two sums again: log-probabilities and counts are summed, and divided once.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tasks.errors import CorpusError
from tasks.language_model.sentence_scores import SentenceScores, read_scores

_CELLS_AT_ONCE = 2_000_000


def resample_counts(sentences: int, samples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each sentence is drawn: blocks (samples in the block, sentences) of counts as float64.

    The same arguments give the same draws, so two models scored on the same sentences are resampled alike.
    """
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS_AT_ONCE // sentences)
    for begin in range(0, samples, block):
        size = min(block, samples - begin)
        drawn = generator.integers(0, sentences, size=(size, sentences))
        drawn += np.arange(size)[:, None] * sentences
        counts = np.bincount(drawn.ravel(), minlength=size * sentences)
        yield counts.reshape(size, sentences).astype(np.float64)


def perplexity_of(log_probability: np.ndarray, targets: np.ndarray) -> float | None:
    """exp of the mean negative log-probability; ``None`` without targets, or where it is beyond any number."""
    count = int(targets.sum())
    mean = -float(log_probability.sum()) / count if count else math.inf
    return math.exp(mean) if mean < 700 else None


def perplexity_interval(
    log_probability: np.ndarray, targets: np.ndarray, samples: int, confidence: float, seed: int
) -> list[float] | None:
    """Lower and upper end of the percentile interval of a perplexity; ``None`` with fewer than two sentences."""
    if len(targets) < 2 or perplexity_of(log_probability, targets) is None:
        return None
    means = [
        -(counts @ log_probability) / np.maximum(counts @ targets, 1)
        for counts in resample_counts(len(targets), samples, seed)
    ]
    low, high = np.quantile(np.exp(np.concatenate(means)), _tails(confidence))
    return [float(low), float(high)]


def _tails(confidence: float) -> list[float]:
    return [(1 - confidence) / 2, (1 + confidence) / 2]


def _paired_columns(path_a: str | Path, path_b: str | Path, known: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-probabilities of both and their common counts of targets, by sentence."""
    (first, first_signature), (second, second_signature) = read_scores(path_a), read_scores(path_b)
    if first_signature != second_signature:
        raise CorpusError(
            f"{str(path_a)!r} and {str(path_b)!r} follow different protocols ({first_signature} and "
            f"{second_signature}); score both models the same way"
        )

    def columns(scores: SentenceScores) -> tuple[np.ndarray, np.ndarray]:
        if known:
            return scores.known_targets, scores.known_log_probability
        return scores.targets, scores.log_probability

    (targets, first_sums), (other_targets, second_sums) = columns(first), columns(second)
    if not np.array_equal(first.line, second.line) or not np.array_equal(targets, other_targets):
        raise CorpusError(
            f"{str(path_a)!r} and {str(path_b)!r} do not score the same sentences; score both models on the same text"
        )
    return first_sums, second_sums, targets


def paired_perplexity_ratio(
    path_a: str | Path, path_b: str | Path, samples: int, confidence: float, seed: int, known: bool = False
) -> tuple[float, float | None, float | None]:
    """Perplexity of A divided by that of B, and its confidence interval by paired bootstrap over sentences.

    Arguments are two scores files of the same text. Both models are resampled alike, so what the sentences have in
    common cancels: an interval that excludes 1 says that the two differ. ``known`` counts only targets in the
    vocabulary. The interval is ``None`` with fewer than two sentences. Raises ``CorpusError`` where the files cannot
    be compared.
    """
    first, second, targets = _paired_columns(path_a, path_b, known)
    difference = second - first  # log of the ratio, summed over targets
    ratio = math.exp(float(difference.sum()) / float(targets.sum()))
    if len(targets) < 2:
        return ratio, None, None
    means = [
        (counts @ difference) / np.maximum(counts @ targets, 1)
        for counts in resample_counts(len(targets), samples, seed)
    ]
    low, high = np.quantile(np.exp(np.concatenate(means)), _tails(confidence))
    return ratio, float(low), float(high)
