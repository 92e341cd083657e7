"""How often each sequence of words stands in a text, as one table an order.

The tables of all orders make a tree: an entry of order k is an entry of order k - 1, its context, and a word. Its key
``context * vocabulary_size + word`` fits 64 bits at any order, and keys are sorted: looking one up is a binary search.
"""

from dataclasses import dataclass

import numpy as np

from tasks.language_model.encoded_text import EncodedText


@dataclass(frozen=True)
class OrderCounts:
    """All n-grams of one order, in the order of their keys."""

    keys: np.ndarray
    """Context's index in the table of the order below, times the vocabulary's size, plus the word (int64). Of order 1:
    the words themselves, every one of the vocabulary."""
    counts: np.ndarray
    """How often each stands in the text with its last word as a target (int64): 0 where it is but a context."""
    begins: np.ndarray
    """Whether its first word is ``<s>``."""
    suffixes: np.ndarray
    """Index in the table of the order below of what is left without the first word (int64); empty for order 1."""


def count_ngrams(text: EncodedText, order: int, vocabulary_size: int) -> list[OrderCounts]:
    """The tables of orders 1 to ``order``; no n-gram reaches across two sentences.

    A marker that is no target (Baseline1) gives no count to the n-grams that end in it, and stays in the contexts.
    """
    is_target = text.is_target()
    place = np.arange(len(text.tokens)) - np.repeat(text.offsets[:-1], np.diff(text.offsets))  # in the sentence, from 0
    index = text.tokens.astype(np.int64)  # (N,): entry of the order at hand that ends at each position, -1 for none
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
            # Nothing has an entry of the highest order as its context.
            kept = counts > 0
            tables.append(OrderCounts(keys[kept], counts[kept], begins[kept], suffixes[kept]))
            break
        tables.append(OrderCounts(keys, counts, begins, suffixes))
        index = np.full(len(index), -1, dtype=np.int64)
        index[ends] = inverse
    return tables
