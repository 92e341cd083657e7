"""Look-ahead: a word-level language model inside the beam search over units (decision 0023).

While a word is being spelled, its score is the probability of all words with that prefix. When the next unit begins a
word, or the sentence ends, the word's own probability replaces that score. So the score of a finished sentence is the
language model's own. No unit raises the score.

At the beginning of a word, the distribution of the first word of a sentence is the estimate. A word outside the
vocabulary has the probability of the unknown word times a fixed share. Every prefix could still become such a word, so
this floor is part of each sum.
"""

import numpy as np

from tasks.language_model.language_models import NextWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.language_model.vocabulary import UNKNOWN_ID
from tasks.speech.fusion.scorers import SpelledUnits
from tasks.speech.fusion.sorted_vocabulary import EMPTY, NextWordDistributions, WordBeginnings, sorted_words
from tasks.speech.search.scorer import PredictorStates, Scorer, grown

_FIRST = 0
"""The history before the first word."""
_FRAMES_BETWEEN_CLEARINGS = 8
UNKNOWN_LOG_SHARE = -9.2
"""Logarithm of a single word's share of the unknown word's probability, if it is outside the vocabulary: about one in
ten thousand."""


class WordLookahead(Scorer):
    """Log-probability of the complete words and of the words that begin like the open one."""

    columns = np.dtype(
        [
            ("history", "i8"), ("word", "i8"), ("complete", "f8"), ("estimate", "f8"), ("ahead", "f8"),
            ("whole", "?"),  # whether the score of the complete words is no estimate
            ("settled", "?"),  # whether no part is one
        ]
    )  # fmt: skip

    def __init__(self, model: NextWords, units: SpelledUnits) -> None:
        self._model, self._units = model, units
        words, self._word_ids = sorted_words(model.vocabulary)
        self._distributions = NextWordDistributions(model, self._word_ids)
        self._beginnings = WordBeginnings(words, units.letters)
        self._looked = np.zeros(0)

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        super().start(tree, states)
        self._distributions.start()
        self._distributions.ensure(np.array([_FIRST]))
        every = np.arange(len(self._units.letters))
        alone = self._look_first(self._beginnings.extended(np.full(len(every), EMPTY), every))
        self._most = np.where(self._units.begins, alone, 0.0).astype(np.float32)[None]
        self.nodes["settled"][ROOT] = self.nodes["whole"][ROOT] = True
        self._frames = 0

    def extend(self, first: int) -> None:
        """Compute the complete words of the nodes from ``first`` on, and their estimates."""
        parents, units = self.tree.parent[first:], self.tree.unit[first:]
        new = self.nodes[parents]
        closing, new["complete"] = self._closed(parents, units, ~new["settled"])
        new["whole"][closing] &= new["settled"][closing]
        new["history"][closing] = self._model.extend(new["history"][closing], self._ids(new["word"][closing]))
        new["word"] = self._grown(new["word"], units)
        new["estimate"], new["ahead"], new["settled"] = self._look_first(new["word"]), 0.0, False
        self.add(first, new)

    def _grown(self, word: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The open word (N,) after one more unit."""
        return self._beginnings.extended(np.where(self._units.begins[units], EMPTY, word), units)

    def _closed(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nodes whose open word a unit completes, by place, and the score of all complete words (N,).

        An estimate scores the word as the first of a sentence.
        """
        history, word, complete = (self.nodes[name][nodes] for name in ("history", "word", "complete"))
        closing = np.flatnonzero(self._units.begins[units] & self._beginnings.has_letter(word))
        given = np.where(estimated[closing], _FIRST, history[closing])
        complete[closing] += self._own(given, word[closing])
        return closing, complete

    def settle(self, nodes: np.ndarray) -> None:
        """Ask the model for the distributions after the words of these nodes (N,), in one call."""
        nodes = np.unique(nodes[~self.nodes["settled"][nodes]])
        if not len(nodes):
            return
        history, word = self.nodes["history"][nodes], self.nodes["word"][nodes]
        asked = [history[self._beginnings.has_letter(word)]]
        # The nodes whose complete words have no known log-probability, then such parents of theirs, and so on.
        levels, level = [], nodes
        while len(level := np.unique(level[~self.nodes["whole"][level]])):
            levels.append(level)
            units, level = self.tree.unit[level], self.tree.parent[level]
            closed = self._units.begins[units] & self._beginnings.has_letter(self.nodes["word"][level])
            asked.append(self.nodes["history"][level[closed]])
        self._distributions.ensure(np.concatenate(asked))
        for level in reversed(levels):
            known = np.zeros(len(level), dtype=bool)
            self.nodes["complete"][level] = self._closed(self.tree.parent[level], self.tree.unit[level], known)[1]
            self.nodes["whole"][level] = True
        self.nodes["ahead"][nodes] = self._look(history, word)
        self.nodes["settled"][nodes] = True

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each sequence (N,); an estimate scores the open word as a first word."""
        of_nodes = self.nodes[nodes]
        return of_nodes["complete"] + np.where(estimated, of_nodes["estimate"], of_nodes["ahead"])

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Upper bound on the score that each unit adds (1, V - 1); for a unit that begins a word, its estimate."""
        return self._most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value inside a word; an estimate at the beginning of a word, except the first word."""
        before = self.nodes["word"][nodes]
        _, found = self._closed(nodes, units, estimated)
        word = self._grown(before, units)
        is_estimate = estimated | (self._units.begins[units] | (before == EMPTY)) & (word != EMPTY)
        found[is_estimate] += self._look_first(word[is_estimate])
        found[~is_estimate] += self._look(self.nodes["history"][nodes[~is_estimate]], word[~is_estimate])
        return found, is_estimate

    def retain(self, nodes: np.ndarray) -> None:
        """Drop distributions that only other nodes need."""
        self._frames += 1
        if self._frames % _FRAMES_BETWEEN_CLEARINGS == 0:
            self._distributions.retain(np.append(self.nodes["history"][nodes], _FIRST))

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        self.settle(nodes)
        history, word, complete = (self.nodes[name][nodes] for name in ("history", "word", "complete"))
        closing = np.flatnonzero(self._beginnings.has_letter(word))
        complete[closing] += self._own(history[closing], word[closing])
        history[closing] = self._model.extend(history[closing], self._ids(word[closing]))
        return complete + self._distributions.sentence_end(history)

    def _ids(self, word: np.ndarray) -> np.ndarray:
        own = self._beginnings.own_word(word)
        return np.where(own >= 0, self._word_ids[own], UNKNOWN_ID)

    def _own(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Log-probability of the word itself (N,)."""
        self._distributions.ensure(history)
        own = self._beginnings.own_word(word)
        known = self._distributions.word(history, np.maximum(own, 0))
        return np.where(own >= 0, known, self._distributions.unknown(history) + UNKNOWN_LOG_SHARE)

    def _look_first(self, word: np.ndarray) -> np.ndarray:
        """``_look`` at the beginning of a sentence (N,); each prefix is looked up once."""
        self._looked = grown(self._looked, self._beginnings.capacity, np.nan)
        if (missing := np.unique(word[np.isnan(self._looked[word])])).size:
            self._looked[missing] = self._look(np.full(len(missing), _FIRST), missing)
        return self._looked[word]

    def _look(self, history: np.ndarray, word: np.ndarray) -> np.ndarray:
        """Log-probability of all words with this prefix (N,); 0 before the first letter."""
        found = np.zeros(len(word))
        inside = np.flatnonzero(self._beginnings.has_letter(word))
        if len(inside):
            history, word = history[inside], word[inside]
            # A sequence that left every beam may return after its distribution was dropped.
            self._distributions.ensure(history)
            between = self._distributions.between(history, *self._beginnings.range_of(word))
            found[inside] = np.log(between + np.exp(self._distributions.unknown(history) + UNKNOWN_LOG_SHARE))
        return found
