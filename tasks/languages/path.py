"""A sticky path through the languages of a line: the next word is usually in the same language.

It is a hidden Markov model (Rabiner 1989). The next word has the language of the last one with the probability
``stay``, else another language, all equally likely. Lines differ in stickiness: some are in one language, others change
at every phrase. So each line is drawn from several values of ``stay``, whose shares are learned.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.languages.letters import Floats, Integers

STAY = np.array([0.7, 0.8, 0.9, 0.95])
"""Values of ``stay``; above 0.95, a single word of the other language would get the language of its neighbours."""
_LINES = 1000


@dataclass(frozen=True)
class Chain:
    """Prior of the languages of a line."""

    first: Floats
    """Share of each language among the first words of lines, (K,)."""
    stickiness: Floats
    """Share of lines with each value of ``STAY``, (S,)."""

    @classmethod
    def even(cls, languages: int) -> "Chain":
        """A uniform prior."""
        return cls(np.full(languages, 1 / languages), np.full(len(STAY), 1 / len(STAY)))

    @property
    def steps(self) -> Floats:
        """Probability of the next language after each language, for each value of ``STAY``, (S, K, K)."""
        languages = len(self.first)
        stay = STAY[:, None, None]
        others = (1 - stay) / max(languages - 1, 1)
        return np.where(np.eye(languages, dtype=bool), stay if languages > 1 else 1.0, others)


@dataclass(frozen=True)
class Path:
    """Posterior probabilities of the languages of lines."""

    languages: Floats
    """Probability of each word's language given its whole line, (N, K)."""
    before: Floats
    """Probability of each word's language given only the words to its left, (N, K), for language models and streams."""
    log_likelihood: float
    """Log-likelihood of all lines, in nats."""
    chain: Chain
    """Chain learned from the lines: the expectation of its values."""


def follow(chain: Chain, evidence: Floats, lengths: Integers) -> Path:
    """The path through lines of ``lengths`` words each, whose words are concatenated.

    ``evidence``: log-probability of each word given its language, (N, K).
    """
    languages, before = np.zeros((2, *evidence.shape))
    first, stickiness = np.zeros_like(chain.first), np.zeros(len(STAY))
    log_likelihood, filled = 0.0, 0
    for lines, inside, words in _batches(lengths):
        scale = evidence[words].max(axis=-1)  # (B, T)
        likelihood = np.exp(evidence[words] - scale[..., None])
        expected, forward, parts = _forward(chain, likelihood, lengths[lines])
        total = np.log(parts).sum(axis=2) + np.log(chain.stickiness)[:, None]  # (S, B)
        most = total.max(axis=0)
        log_line = most + np.log(np.exp(total - most).sum(axis=0))
        weight = np.exp(total - log_line)
        smooth = forward * _backward(chain, likelihood, parts, lengths[lines])
        smooth /= smooth.sum(axis=-1, keepdims=True)
        found = np.einsum("sb,sbtk->btk", weight, smooth)
        languages[words[inside]], before[words[inside]] = found[inside], _left(chain, expected, parts)[inside]
        first += found[:, 0].sum(axis=0)
        stickiness += weight.sum(axis=1)
        log_likelihood += float(log_line.sum() + scale[inside].sum())
        filled += len(lines)
    if not filled:
        return Path(languages, before, 0.0, chain)
    # One line in a hundred is uniform, so that nothing becomes impossible.
    learned = Chain(*(0.99 * counts / filled + 0.01 / len(counts) for counts in (first, stickiness)))
    return Path(languages, before, log_likelihood, learned)


def _batches(lengths: Integers) -> Iterator[tuple[Integers, NDArray[np.bool_], Integers]]:
    """Lines of similar length: their numbers (B,), which places they have, and the word of each place, (B, T)."""
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    for begin in range(0, len(order), _LINES):
        lines = order[begin : begin + _LINES]
        places = np.arange(lengths[lines].max())
        inside = places < lengths[lines][:, None]
        yield lines, inside, starts[lines][:, None] + np.where(inside, places, 0)


def _forward(chain: Chain, likelihood: Floats, lengths: Integers) -> tuple[Floats, Floats, Floats]:
    """Probability of each language at a place given the earlier words, the same including the place's word, both (S, B,
    T, K), and the probability of the word given the earlier ones, (S, B, T)."""
    lines, places, languages = likelihood.shape
    expected, forward = np.empty((2, len(STAY), lines, places, languages))
    parts = np.ones((len(STAY), lines, places))
    steps = chain.steps
    for place in range(places):
        expected[:, :, place] = forward[:, :, place - 1] @ steps if place else chain.first
        found = expected[:, :, place] * likelihood[:, place]
        share = found.sum(axis=-1)
        forward[:, :, place] = found / share[..., None]
        parts[:, :, place] = np.where(place < lengths, share, 1.0)
    return expected, forward, parts


def _backward(chain: Chain, likelihood: Floats, parts: Floats, lengths: Integers) -> Floats:
    """Probability of the later words given the language of a place, (S, B, T, K), up to a factor."""
    later = np.ones((*parts.shape, likelihood.shape[-1]))
    steps = chain.steps.transpose(0, 2, 1)
    for place in range(parts.shape[-1] - 2, -1, -1):
        found = (likelihood[:, place + 1] * later[:, :, place + 1]) @ steps / parts[:, :, place + 1, None]
        later[:, :, place] = np.where((place + 1 < lengths)[:, None], found, 1.0)
    return later


def _left(chain: Chain, expected: Floats, parts: Floats) -> Floats:
    """Probability of each language given the words to the left, averaged over the posterior of ``STAY``, (B, T, K)."""
    logs = np.cumsum(np.log(parts), axis=2) - np.log(parts) + np.log(chain.stickiness)[:, None, None]
    weight = np.exp(logs - logs.max(axis=0))
    weight /= weight.sum(axis=0)
    return np.einsum("sbt,sbtk->btk", weight, expected)
