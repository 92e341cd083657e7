"""A word-level language model inside the search over units: look-ahead.

While a word is being spelled its score is the probability of all words that begin so; when the next unit begins a word,
or the sentence ends, the word's own probability takes its place. What was added comes off again, so the score of a
finished sentence is the language model's own, however units divide the words. At no unit does the score rise.

Where a word begins, the model has not yet been asked what stands behind the words before it. Until it is, what it says
of the first word of a sentence is the estimate.

A word outside the vocabulary has the probability of the unknown word times a fixed share: it is one of many. Every
beginning of a word could still become such a word, so this floor is part of each sum.
"""

from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.language_models import NextWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.language_model.vocabulary import UNKNOWN_ID
from tasks.speech.fusion.next_word_distributions import EMPTY, NextWordDistributions, SortedVocabulary, WordBeginnings
from tasks.speech.fusion.prefix_score import NodeValues, PrefixScore, SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT

FIRST = 0
"""The history before the first word."""
_FRAMES_BETWEEN_CLEARINGS = 8


class WordLookahead(PrefixScore):
    """See ``PrefixScore``."""

    exact = False

    def __init__(self, model: NextWords, units: SpelledUnits, unknown_log_share: float) -> None:
        """``unknown_log_share``: logarithm of the unknown word's share that one word outside the vocabulary has."""
        self._model, self._units, self._log_share = model, units, unknown_log_share
        self._vocabulary = SortedVocabulary(model.vocabulary)
        self._distributions = NextWordDistributions(model, self._vocabulary)
        self._beginnings = WordBeginnings(self._vocabulary, units.letters)
        self._looked = np.zeros(0)

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
        self._tree = tree
        self._distributions.start()
        self._distributions.ensure(np.array([FIRST]))
        every = np.arange(len(self._units.letters))
        alone = self._look_first(self._beginnings.extended(np.full(len(every), EMPTY), every))
        self._most = np.where(self._units.begins, alone, 0.0).astype(np.float32)[None]
        self._history, self._word = NodeValues(np.int64), NodeValues(np.int64)
        self._complete, self._ahead, self._estimate = NodeValues(), NodeValues(), NodeValues()
        # Of each node: whether its value is known, and whether the log-probability of its whole words is.
        self._settled, self._whole = NodeValues(bool), NodeValues(bool)
        for known in (self._settled, self._whole):
            known.set(ROOT, np.ones(1, dtype=bool))
        self._frames = 0

    def extend(self, first: int) -> None:
        """Find out the whole words of the nodes from ``first`` on, and their estimates."""
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
        """Ask the model what stands behind the words of these nodes (N,), in one call."""
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
            self._whole.put(level, np.ones(len(level), dtype=bool))
        self._ahead.put(nodes, self._look(history, word))
        self._settled.put(nodes, np.ones(len(nodes), dtype=bool))

    def _levels_that_are_not_whole(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Those of the nodes whose whole words have no known log-probability, what stands before those, and so on."""
        levels = []
        while len(nodes := np.unique(nodes[~self._whole[nodes]])):
            levels.append(nodes)
            nodes = self._tree.parent[nodes]
        return levels

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,); that of its whole words alone where it is not settled."""
        return self._complete[nodes] + self._ahead[nodes]

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence (N,), its open word as if it were the first one."""
        return self._complete[nodes] + self._estimate[nodes]

    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """No less than what each unit adds (1, V - 1): where it begins a word, its estimate."""
        return self._most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inside a word the value; where a word begins an estimate, unless it is the first one."""
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
        self._asked = looked, is_estimate
        return found + looked, is_estimate

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """Of what ``ahead`` was asked last, these (M,) are nodes now: those whose values it found are settled."""
        looked, is_estimate = self._asked
        known = ~is_estimate[chosen]
        # A node that was made when its parent was not settled has an estimate of its whole words.
        self.settle(nodes[known & ~self._whole[nodes]])
        known &= self._whole[nodes]
        self._ahead.put(nodes[known], looked[chosen[known]])
        self._settled.put(nodes[known], np.ones(int(known.sum()), dtype=bool))

    def retain(self, nodes: np.ndarray) -> None:
        """Let go of what only other nodes need."""
        self._frames += 1
        if self._frames % _FRAMES_BETWEEN_CLEARINGS == 0:
            self._distributions.retain(np.append(self._history[nodes], FIRST))

    def finish(self, nodes: np.ndarray) -> np.ndarray:
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
        return np.where(own >= 0, known, self._distributions.unknown(history) + self._log_share)

    def _look_first(self, word: np.ndarray) -> np.ndarray:
        """``_look`` behind the beginning of a sentence (N,), each beginning of a word once and for all."""
        if (more := len(self._beginnings.table) - len(self._looked)) > 0:
            self._looked = np.concatenate([self._looked, np.full(more, np.nan)])
        if (missing := np.unique(word[np.isnan(self._looked[word])])).size:
            self._looked[missing] = self._look(np.full(len(missing), FIRST), missing)
        return self._looked[word]

    def _look(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Log-probability of all words (N,) that begin so; 0 before the first letter."""
        found = np.zeros(len(word))
        inside = np.flatnonzero(self._beginnings.table[word, 3] > 0)
        if len(inside):
            history, word = history[inside], word[inside]
            # A sequence that fell out of every beam may come back, and what was let go with it.
            self._distributions.ensure(history)
            first, last = self._beginnings.table[word, 0], self._beginnings.table[word, 1]
            between = self._distributions.between(history, first, last)
            found[inside] = np.log(between + np.exp(self._distributions.unknown(history) + self._log_share))
        return found
