"""Modified Kneser-Ney smoothing, interpolated (Chen and Goodman 1999, section 3; the discounts are its equation 17).

The highest order uses counts. A lower order counts the different words before an n-gram, since it is used only where
the longer context is unknown. Nothing can precede an n-gram that begins with ``<s>``, so its plain count is used (as in
KenLM and SRILM). Below the lowest order is the uniform distribution over all words that can be predicted, including
markers.

Each order has one table of counts, and the tables form a tree: an entry of order k is an entry of order k - 1, its
context, and a word. Its key ``context * vocabulary_size + word`` fits 64 bits at any order. Keys are sorted, so a
look-up is a binary search.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.ngram.backoff_model import BackoffModel, BackoffOrder
from tasks.language_model.vocabulary import PADDING_ID, START_ID


@dataclass(frozen=True)
class OrderCounts:
    """All n-grams of one order, sorted by key."""

    keys: np.ndarray
    """Index of the context in the table of the order below, times the vocabulary's size, plus the word (int64). For
    order 1: every word of the vocabulary."""
    counts: np.ndarray
    """Count of each n-gram with its last word as a target (int64); 0 for one that is only a context."""
    begins: np.ndarray
    """Whether the first word of each n-gram is ``<s>``, bool."""
    suffixes: np.ndarray
    """Index of each n-gram without its first word, in the table of the order below (int64); empty for order 1."""


def count_ngrams(text: EncodedText, order: int, vocabulary_size: int) -> list[OrderCounts]:
    """The tables of orders 1 to ``order``; no n-gram crosses a sentence boundary.

    A marker that is no target (Baseline1) adds no count to the n-grams that end in it; it remains in contexts.
    """
    is_target = text.is_target()
    place = np.arange(len(text.tokens)) - np.repeat(text.offsets[:-1], np.diff(text.offsets))  # in the sentence, from 0
    index = text.tokens.astype(np.int64)  # (N,): entry of the current order that ends at each position, -1 for none
    counts = np.bincount(index, weights=is_target, minlength=vocabulary_size).astype(np.int64)
    begins = np.zeros(vocabulary_size, dtype=bool)
    begins[index[place == 0]] = True
    tables = [OrderCounts(np.arange(vocabulary_size), counts, begins, np.empty(0, dtype=np.int64))]
    for length in range(2, order + 1):
        ends = np.flatnonzero(place >= length - 1)
        keys, inverse = np.unique(index[ends - 1] * vocabulary_size + text.tokens[ends], return_inverse=True)
        counts = np.bincount(inverse, weights=is_target[ends], minlength=len(keys)).astype(np.int64)
        begins = np.zeros(len(keys), dtype=bool)
        begins[inverse[place[ends] == length - 1]] = True
        suffixes = np.empty(len(keys), dtype=np.int64)
        suffixes[inverse] = index[ends]
        if length == order:
            # No entry has one of the highest order as its context.
            used = counts > 0
            tables.append(OrderCounts(keys[used], counts[used], begins[used], suffixes[used]))
            break
        tables.append(OrderCounts(keys, counts, begins, suffixes))
        index = np.full(len(index), -1, dtype=np.int64)
        index[ends] = inverse
    return tables


FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""Discounts for a text that is too small for the estimate, as in KenLM."""
_NEVER_PREDICTED = (PADDING_ID, START_ID)


@dataclass(frozen=True)
class Discounts:
    """Absolute discounts of one order, for counts of 1, of 2, and of 3 or more."""

    values: tuple[float, float, float]
    estimated: bool
    """False where the counts of counts give no valid discounts; ``values`` are then ``FALLBACK_DISCOUNTS``."""


def discounts_of(counts: np.ndarray) -> Discounts:
    """Estimate the three discounts from the counts of counts n1 to n4 of one order."""
    ones, twos, threes, fours = (int((counts == number).sum()) for number in range(1, 5))
    if min(ones, twos, threes, fours) == 0:
        return Discounts(FALLBACK_DISCOUNTS, estimated=False)
    share = ones / (ones + 2 * twos)
    values = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
    if not all(0 < value < limit for limit, value in enumerate(values, start=1)):
        return Discounts(FALLBACK_DISCOUNTS, estimated=False)
    return Discounts(values, estimated=True)


def estimate(text: EncodedText, order: int, vocabulary_size: int) -> tuple[BackoffModel, list[Discounts]]:
    """Estimate the model of a text; returns it and the discounts of each order."""
    tables = count_ngrams(text, order, vocabulary_size)
    adjusted = [_adjusted(lower, higher) for lower, higher in pairwise(tables)] + [tables[-1].counts]
    discounts = [discounts_of(counts) for counts in adjusted]
    lower = np.full(vocabulary_size, 1 / (vocabulary_size - len(_NEVER_PREDICTED)))  # the order below: uniform
    contexts = np.zeros(vocabulary_size, dtype=np.int64)
    probabilities: list[np.ndarray] = []
    backoffs: list[np.ndarray] = []
    for table, counts, discount in zip(tables, adjusted, discounts, strict=True):
        taken = np.array((0.0, *discount.values))[np.minimum(counts, 3)]
        if probabilities:
            contexts = table.keys // vocabulary_size
        below = lower[table.suffixes] if probabilities else lower
        total = np.bincount(contexts, weights=counts, minlength=len(lower) if probabilities else 1)
        freed = np.bincount(contexts, weights=taken, minlength=len(total))
        divisor = np.maximum(total, 1)  # a context without counted words backs off with weight 1
        backoff = np.where(total > 0, freed / divisor, 1.0)
        lower = (counts - taken) / divisor[contexts] + backoff[contexts] * below
        if probabilities:
            backoffs.append(backoff)
        else:
            lower[list(_NEVER_PREDICTED)] = 0.0
        probabilities.append(lower)
    backoffs.append(np.ones(len(lower)))
    with np.errstate(divide="ignore"):
        orders = [
            BackoffOrder(table.keys, np.log(probability), np.log(backoff))
            for table, probability, backoff in zip(tables, probabilities, backoffs, strict=True)
        ]
    return BackoffModel(orders, vocabulary_size), discounts


def _adjusted(table: OrderCounts, higher: OrderCounts) -> np.ndarray:
    """Number of different words before each n-gram of ``table``; its count where it begins with ``<s>``."""
    before = np.bincount(higher.suffixes[higher.counts > 0], minlength=len(table.keys))
    return np.where(table.begins, table.counts, before)
