"""A word-level language model inside the search over units: look-ahead.

While a word is being spelled its score is the probability of all words that begin so; when the next unit begins a word,
or the sentence ends, the word's own probability takes its place. What was added comes off again, so the score of a
finished sentence is the language model's own, however units divide the words. At no unit does the score rise.

A word outside the vocabulary has the probability of the unknown word times a fixed share: it is one of many. Every
beginning of a word could still become such a word, so this floor is part of each sum.
"""

from typing import Any

import numpy as np

from tasks.language_model.vocabulary import UNKNOWN_ID
from tasks.speech.fusion.next_word_distributions import NextWordDistributions
from tasks.speech.fusion.prefix_score import NodeValues
from tasks.speech.fusion.sorted_vocabulary import EMPTY, SortedVocabulary, WordBeginnings
from tasks.speech.fusion.spelled_units import SpelledUnits
from tasks.speech.search.next_word.next_word_model import NextWordModel
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.prefix_tree import PrefixTree

_FRAMES_BETWEEN_CLEARINGS = 8


class WordLookahead:
    """See ``PrefixScore``."""

    exact = False

    def __init__(self, model: NextWordModel, units: SpelledUnits, unknown_log_share: float) -> None:
        """``unknown_log_share``: logarithm of the unknown word's share that one word outside the vocabulary has."""
        self._model, self._units, self._log_share = model, units, unknown_log_share
        self._vocabulary = SortedVocabulary(model.vocabulary)
        self._distributions = NextWordDistributions(model, self._vocabulary)
        self._beginnings = WordBeginnings(self._vocabulary, units.letters)

    def start(self, tree: PrefixTree, states: PredictorStates, model: Any) -> None:
        """Begin with a tree that holds the root alone."""
        self._tree = tree
        self._distributions.start()
        self._history, self._word = NodeValues(np.int64), NodeValues(np.int64)
        self._complete, self._ahead = NodeValues(), NodeValues()
        self._frames = 0

    def extend(self, first: int) -> None:
        """Score the nodes from ``first`` on."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        begins = self._units.begins[units]
        history, complete = self._history[parents], self._complete[parents]
        word = self._word[parents]
        closing = np.flatnonzero(begins & (self._beginnings.table[word, 3] > 0))
        if len(closing):
            complete[closing] += self._own(history[closing], word[closing])
            history[closing] = self._model.extend(history[closing], self._ids(word[closing]))
        word[begins] = EMPTY
        word = self._beginnings.extended(word, units)
        ahead = np.zeros(len(word))
        open_words = np.flatnonzero(self._beginnings.table[word, 3] > 0)
        if len(open_words):
            ahead[open_words] = self._look(history[open_words], word[open_words])
        self._history.set(first, history)
        self._word.set(first, word)
        self._complete.set(first, complete)
        self._ahead.set(first, ahead)

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,)."""
        return self._complete[nodes] + self._ahead[nodes]

    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """What each unit adds behind each node (N, V - 1)."""
        raise NotImplementedError("what a unit adds is found out by extend")

    def limit(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Inside a word the value itself; where a word begins, that of the words before it: the model is not asked
        for the next word before the last one is seen to be worth it."""
        found, history, before = self._complete[nodes], self._history[nodes], self._word[nodes]
        begins = self._units.begins[units]
        closing = np.flatnonzero(begins & (self._beginnings.table[before, 3] > 0))
        if len(closing):
            found[closing] += self._own(history[closing], before[closing])
        inside = np.flatnonzero(~begins)
        if len(inside):
            word = self._beginnings.extended(before[inside], units[inside])
            inside, word = inside[self._beginnings.table[word, 3] > 0], word[self._beginnings.table[word, 3] > 0]
            found[inside] += self._look(history[inside], word)
        return found

    def retain(self, nodes: np.ndarray) -> None:
        """Let go of what only other nodes need."""
        self._frames += 1
        if self._frames % _FRAMES_BETWEEN_CLEARINGS == 0:
            self._distributions.retain(self._history[nodes])

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        word, history, complete = self._word[nodes], self._history[nodes], self._complete[nodes]
        closing = np.flatnonzero(self._beginnings.table[word, 3] > 0)
        if len(closing):
            complete[closing] += self._own(history[closing], word[closing])
            history[closing] = self._model.extend(history[closing], self._ids(word[closing]))
        return complete + self._distributions.sentence_end(history)

    def _ids(self, word: np.ndarray) -> np.ndarray:
        own = self._beginnings.table[word, 2]
        return np.where(own >= 0, self._vocabulary.columns[own], UNKNOWN_ID)

    def _own(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        self._distributions.ensure(history)
        own = self._beginnings.table[word, 2]
        known = self._distributions.word(history, np.maximum(own, 0))
        return np.where(own >= 0, known, self._distributions.unknown(history) + self._log_share)

    def _look(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        self._distributions.ensure(history)
        first, last = self._beginnings.table[word, 0], self._beginnings.table[word, 1]
        inside = self._distributions.between(history, first, last)
        return np.log(inside + np.exp(self._distributions.unknown(history) + self._log_share))
