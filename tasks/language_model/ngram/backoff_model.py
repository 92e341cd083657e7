"""A back-off language model, and a mixture of several: the weighted mean of their probabilities at every word.

Expectation-maximisation finds the mixture weights under which held-out text is most probable (Jelinek and Mercer 1980).
The models remain separate, since a single back-off model cannot represent their mixture exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_factors import LanguageFactors
from tasks.language_model.vocabulary import MARKERS, SPECIAL_TOKENS


@dataclass(frozen=True)
class BackoffOrder:
    """The n-grams of one order, sorted by key (see ``kneser_ney.OrderCounts``)."""

    keys: np.ndarray
    """Sorted keys (int64); for order 1, every word of the vocabulary by id."""
    log_probability: np.ndarray
    """Log-probability of the last word given the others, in nats (float64); -inf for words never predicted."""
    log_backoff: np.ndarray
    """Log of the back-off weight of each n-gram as a context, in nats (float64)."""


@dataclass(frozen=True)
class BackoffModel:
    """All orders of a model."""

    orders: list[BackoffOrder]
    vocabulary_size: int

    @property
    def order(self) -> int:
        """Length of the longest n-gram."""
        return len(self.orders)

    def log_probabilities(self, tokens: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Each id's log-probability given the earlier ones of its sentence, in nats (N,); 0 for the first id.

        ``tokens`` (N,) holds sentences one after the other, ``offsets`` the start of each and the end of the last.
        """
        result = self.orders[0].log_probability[tokens]
        for (lower, higher), ends, contexts, found in self._entries(tokens, offsets):
            backed_off = result[ends] + lower.log_backoff[contexts]
            result[ends] = np.where(found >= 0, higher.log_probability[found], backed_off)
        result[offsets[:-1]] = 0.0
        return result

    def class_probabilities(self, tokens: np.ndarray, offsets: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The probability of each class of words, given the words before each id in its sentence (N, C).

        ``classes`` (V, C): share of each class in each word; ``tokens`` and ``offsets`` as in ``log_probabilities``.
        """
        of_context = np.exp(self.orders[0].log_probability)[None] @ classes  # (1, C): nothing before
        result = np.repeat(of_context, len(tokens), axis=0)
        shorter = np.zeros(self.vocabulary_size, dtype=np.int64)  # index of each context without its first word
        for (lower, higher), ends, of_ends, _ in self._entries(tokens, offsets):
            contexts, words = np.divmod(higher.keys, self.vocabulary_size)
            is_first = lower is self.orders[0]
            suffixes = words if is_first else find(lower.keys, shorter[contexts] * self.vocabulary_size + words)
            backoff = np.exp(lower.log_backoff)
            more = np.exp(higher.log_probability) - backoff[contexts] * np.exp(lower.log_probability[suffixes])
            of_context = backoff[:, None] * of_context[shorter]
            for number, share in enumerate(classes[words].T):
                of_context[:, number] += np.bincount(contexts, more * share, len(of_context))
            shorter = suffixes
            result[ends] = of_context[of_ends]
        return result

    def _entries(
        self, tokens: np.ndarray, offsets: np.ndarray
    ) -> Iterator[tuple[tuple[BackoffOrder, BackoffOrder], np.ndarray, np.ndarray, np.ndarray]]:
        """For each order from 2 on, with the order below: the places (E,) of ids after a known context, the entry of
        this context in the order below (E,), and the entry that ends at the id (E,), -1 where it is missing."""
        tokens = tokens.astype(np.int64)
        place = np.arange(len(tokens)) - np.repeat(offsets[:-1], np.diff(offsets))
        index = tokens  # entry of the current order that ends at each place, -1 for none
        for length, (lower, higher) in enumerate(pairwise(self.orders), start=2):
            if not len(higher.keys):
                return
            before = np.concatenate([[-1], index[:-1]])
            ends = np.flatnonzero((place >= length - 1) & (before >= 0))
            found = find(higher.keys, before[ends] * self.vocabulary_size + tokens[ends])
            yield (lower, higher), ends, before[ends], found
            index = np.full(len(tokens), -1, dtype=np.int64)
            index[ends] = found


def find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The index of each wanted key in the sorted, non-empty ``keys``; -1 where it is missing."""
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, index, -1)


MOST_ROUNDS = 200
_CLOSE_ENOUGH = 1e-6
_MARKER_IDS = [SPECIAL_TOKENS.index(marker) for marker in MARKERS]


@dataclass(frozen=True)
class NgramMixture:
    """Models over the same vocabulary and their weights, which sum to 1."""

    models: Sequence[BackoffModel]
    weights: Sequence[float]
    languages: LanguageFactors | None = None
    """Factors for predicting the language of the next word first; ``None``: not used."""

    def log_probabilities(self, text: EncodedText) -> np.ndarray:
        """The log-probability of each id of a text (N,), in nats; 0 at the start of a sentence."""
        each = [
            np.log(weight) + model.log_probabilities(text.tokens, text.offsets)
            for model, weight in zip(self.models, self.weights, strict=True)
            if weight > 0
        ]
        mixed = np.logaddexp.reduce(each, axis=0)
        if self.languages is not None:
            own = self.class_probabilities(text, self.languages.classes)
            mixed += self.languages.correction(self.languages.expected(text), own, text.tokens)
        mixed[text.offsets[:-1]] = 0.0
        return mixed

    def class_probabilities(self, text: EncodedText, classes: np.ndarray) -> np.ndarray:
        """The probability of each class of words at each id of a text (N, C), without language factors."""
        return np.sum(
            [
                weight * model.class_probabilities(text.tokens, text.offsets, classes)
                for model, weight in zip(self.models, self.weights, strict=True)
                if weight > 0
            ],
            axis=0,
        )

    def marker_log_probabilities(self, text: EncodedText) -> np.ndarray:
        """The log-probability of all markers together at each id of a text (N,), in nats, without language factors."""
        is_marker = np.zeros((self.models[0].vocabulary_size, 1))
        is_marker[_MARKER_IDS] = 1.0
        with np.errstate(divide="ignore"):  # a model that was trained on unmarked text may never predict a marker
            return np.log(self.class_probabilities(text, is_marker)[:, 0])

    def mean_loss(self, text: EncodedText) -> float:
        """Mean loss of a text, in nats a target."""
        return -float(self.log_probabilities(text)[text.is_target()].mean())


def weight_of_first(first: BackoffModel, second: NgramMixture, text: EncodedText) -> tuple[float, int]:
    """The maximum-likelihood weight of the first model for a text, and the number of rounds."""
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
