"""Look-ahead: a word-level language model inside the beam search over units.

While a word is being spelled, its score is the probability of all words with that prefix. When the next unit begins a
word, or the sentence ends, the word's own probability replaces that score. The look-ahead thus cancels out, and the
score of a finished sentence is the language model's own, however units divide the words. No unit raises the score.

At the beginning of a word the model has not yet been asked for the distribution after the previous words. Until then
the estimate is the distribution of the first word of a sentence.

A word outside the vocabulary has the probability of the unknown word times a fixed share: it is one of many. Every
prefix could still become such a word, so this floor is part of each sum.
"""

import numpy as np

from tasks.language_model.language_models import NextWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.language_model.vocabulary import UNKNOWN_ID
from tasks.speech.fusion.next_word_distributions import EMPTY, NextWordDistributions, SortedVocabulary, WordBeginnings
from tasks.speech.fusion.unit_scorers import SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.scorer import NodeValues, Scorer

FIRST = 0
"""The history before the first word."""
_FRAMES_BETWEEN_CLEARINGS = 8
UNKNOWN_LOG_SHARE = -9.2
"""Logarithm of a single word's share of the unknown word's probability, if it is outside the vocabulary: about one in
ten thousand."""


class WordLookahead(Scorer):
    """Log-probability of the complete words and of the words that begin like the open one."""

    def __init__(self, model: NextWords, units: SpelledUnits) -> None:
        self._model, self._units = model, units
        self._vocabulary = SortedVocabulary(model.vocabulary)
        self._distributions = NextWordDistributions(model, self._vocabulary)
        self._beginnings = WordBeginnings(self._vocabulary, units.letters)
        self._looked = np.zeros(0)

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        self._tree = tree
        self._distributions.start()
        self._distributions.ensure(np.array([FIRST]))
        every = np.arange(len(self._units.letters))
        alone = self._look_first(self._beginnings.extended(np.full(len(every), EMPTY), every))
        self._most = np.where(self._units.begins, alone, 0.0).astype(np.float32)[None]
        self._history, self._word = NodeValues(np.int64), NodeValues(np.int64)
        self._complete, self._ahead, self._estimate = NodeValues(), NodeValues(), NodeValues()
        # For each node: whether its value is known, and whether the log-probability of its complete words is known.
        self._settled, self._whole = NodeValues(bool), NodeValues(bool)
        for known in (self._settled, self._whole):
            known.set(ROOT, np.ones(1, dtype=bool))
        self._frames = 0

    def extend(self, first: int) -> None:
        """Compute the complete words of the nodes from ``first`` on, and their estimates."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        history, complete, word = self._history[parents], self._complete[parents], self._word[parents]
        whole = self._whole[parents]
        begins = self._units.begins[units]
        closing = np.flatnonzero(begins & (self._beginnings.table[word, 3] > 0))
        if len(closing):
            settled = self._settled[parents[closing]]
            complete[closing] += self._own(np.where(settled, history[closing], FIRST), word[closing])
            whole[closing] &= settled
            history[closing] = self._model.extend(history[closing], self._ids(word[closing]))
        word = self._beginnings.extended(np.where(begins, EMPTY, word), units)
        self._history.set(first, history)
        self._word.set(first, word)
        self._complete.set(first, complete)
        self._whole.set(first, whole)
        self._estimate.set(first, self._look_first(word))
        self._settled.set(first, np.zeros(len(word), dtype=bool))
        self._ahead.set(first, np.zeros(len(word)))

    def settle(self, nodes: np.ndarray) -> None:
        """Ask the model for the distributions after the words of these nodes (N,), in one call."""
        nodes = np.unique(nodes[~self._settled[nodes]])
        if not len(nodes):
            return
        history, word = self._history[nodes], self._word[nodes]
        levels = self._levels_that_are_not_whole(nodes)
        above = [self._tree.parent[level] for level in levels]
        closing = [
            self._units.begins[self._tree.unit[level]] & (self._beginnings.table[self._word[parents], 3] > 0)
            for level, parents in zip(levels, above, strict=True)
        ]
        asked = [self._history[parents[closed]] for parents, closed in zip(above, closing, strict=True)]
        self._distributions.ensure(np.concatenate([history[self._beginnings.table[word, 3] > 0], *asked]))
        for level, parents, closed in zip(*map(reversed, (levels, above, closing)), strict=True):
            complete = self._complete[parents]
            complete[closed] += self._own(self._history[parents[closed]], self._word[parents[closed]])
            self._complete.put(level, complete)
            self._whole.put(level, True)
        self._ahead.put(nodes, self._look(history, word))
        self._settled.put(nodes, True)

    def _levels_that_are_not_whole(self, nodes: np.ndarray) -> list[np.ndarray]:
        """The nodes whose complete words have no known log-probability, then such parents of theirs, and so on."""
        levels = []
        while len(nodes := np.unique(nodes[~self._whole[nodes]])):
            levels.append(nodes)
            nodes = self._tree.parent[nodes]
        return levels

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each sequence (N,); an estimate scores the open word as a first word."""
        return self._complete[nodes] + np.where(estimated, self._estimate[nodes], self._ahead[nodes])

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Upper bound on the score that each unit adds (1, V - 1); for a unit that begins a word, its estimate."""
        return self._most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value inside a word; an estimate at the beginning of a word, except the first word."""
        history, before = self._history[nodes], self._word[nodes]
        found = self._complete[nodes]
        begins = self._units.begins[units]
        closing = np.flatnonzero(begins & (self._beginnings.table[before, 3] > 0))
        if len(closing):
            given = np.where(estimated[closing], FIRST, history[closing])
            found[closing] += self._own(given, before[closing])
        word = self._beginnings.extended(np.where(begins, EMPTY, before), units)
        is_estimate = estimated | (begins | (before == EMPTY)) & (word != EMPTY)
        looked = np.empty(len(nodes))
        looked[is_estimate] = self._look_first(word[is_estimate])
        looked[~is_estimate] = self._look(history[~is_estimate], word[~is_estimate])
        return found + looked, is_estimate

    def retain(self, nodes: np.ndarray) -> None:
        """Drop distributions that only other nodes need."""
        self._frames += 1
        if self._frames % _FRAMES_BETWEEN_CLEARINGS == 0:
            self._distributions.retain(np.append(self._history[nodes], FIRST))

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        self.settle(nodes)
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
        return np.where(own >= 0, known, self._distributions.unknown(history) + UNKNOWN_LOG_SHARE)

    def _look_first(self, word: np.ndarray) -> np.ndarray:
        """``_look`` at the beginning of a sentence (N,); each prefix is looked up once."""
        if (more := len(self._beginnings.table) - len(self._looked)) > 0:
            self._looked = np.concatenate([self._looked, np.full(more, np.nan)])
        if (missing := np.unique(word[np.isnan(self._looked[word])])).size:
            self._looked[missing] = self._look(np.full(len(missing), FIRST), missing)
        return self._looked[word]

    def _look(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Log-probability of all words with this prefix (N,); 0 before the first letter."""
        found = np.zeros(len(word))
        inside = np.flatnonzero(self._beginnings.table[word, 3] > 0)
        if len(inside):
            history, word = history[inside], word[inside]
            # A sequence that left every beam may return after its distribution was dropped.
            self._distributions.ensure(history)
            first, last = self._beginnings.table[word, 0], self._beginnings.table[word, 1]
            between = self._distributions.between(history, first, last)
            found[inside] = np.log(between + np.exp(self._distributions.unknown(history) + UNKNOWN_LOG_SHARE))
        return found
