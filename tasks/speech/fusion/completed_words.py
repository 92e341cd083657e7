"""A causal language model with its own tokens inside the search over units: it scores complete words.

Its tokens are not the recogniser's units, so it has no score for a word prefix, and there is no look-ahead. Instead
each letter has a fixed cost, equal for all words. When the next unit begins a word, the complete word's log-probability
replaces its letter costs. So nothing is counted twice, and a finished sentence has the model's own score. Complete
words are scored every few frames, all at once, and have their letter costs until then.
"""

import numpy as np

from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.fusion.unit_scorers import SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.scorer import NodeValues, Scorer

LETTER = 1.6
"""Cost of a letter in nats until the word is scored: SmolLM2-135M's average for the letters of correct sentences
without case and punctuation (wrong ones: 2.7). At a lower cost, words that never end win the beam."""


class CompletedWords(Scorer):
    """Log-probability of the complete words, less the letter costs of the open word.

    An estimate has letter costs for complete words that are not scored yet.
    """

    def __init__(self, model: WholeWords, units: SpelledUnits) -> None:
        self._model, self._units = model, units
        # Apostrophes at either end of a word are no letters, as in normalisation.
        self._letters = np.array([len(letters.replace("'", "")) for letters in units.letters])
        self._most = (-LETTER * self._letters).astype(np.float32)[None]

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        self._tree = tree
        self._model.start()
        self._open: list[str] = [""]
        self._history, self._length = NodeValues(np.int64), NodeValues(np.int64)
        self._value, self._estimate, self._settled = NodeValues(), NodeValues(), NodeValues(bool)
        self._settled.set(ROOT, np.ones(1, dtype=bool))

    def extend(self, first: int) -> None:
        """Spell the words of the nodes from ``first`` on, and estimate their values."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        history, closed = self._history[parents], np.zeros(len(parents), dtype=bool)
        for place, (parent, unit) in enumerate(zip(parents.tolist(), units.tolist(), strict=True)):
            before = self._open[parent]
            if self._units.begins[unit]:
                if word := before.strip("'"):
                    history[place] = self._model.extend(int(history[place]), word)
                    closed[place] = True
                before = ""
            self._open.append(before + self._units.letters[unit])
        length = np.where(self._units.begins[units], 0, self._length[parents]) + self._letters[units]
        cost = LETTER * self._letters[units]
        settled = self._settled[parents]
        self._estimate.set(first, np.where(settled, self._value[parents], self._estimate[parents]) - cost)
        self._history.set(first, history)
        self._length.set(first, length)
        self._settled.set(first, settled & ~closed)
        self._value.set(first, self._value[parents] - cost)

    def settle(self, nodes: np.ndarray) -> None:
        """Score the complete words of these nodes (N,) with the model, in one call for each word of a sentence."""
        nodes = np.unique(nodes[~self._settled[nodes]])
        if len(nodes):
            histories = self._history[nodes]
            self._model.read(histories)
            self._value.put(nodes, self._model.values(histories) - LETTER * self._length[nodes])
            self._settled.put(nodes, True)

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each sequence (N,); settled nodes have no other estimate."""
        return np.where(estimated & ~self._settled[nodes], self._estimate[nodes], self._value[nodes])

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Negative letter costs of each unit (1, V - 1)."""
        return self._most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values less the letter costs of the units; estimates after a complete word."""
        closes = self._units.begins[units] & (self._length[nodes] > 0)
        return self.values(nodes, estimated) - LETTER * self._letters[units], estimated | closes

    def retain(self, nodes: np.ndarray) -> None:
        """Nothing is dropped: numbers are small."""

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        history = self._history[nodes]
        for place, node in enumerate(nodes.tolist()):
            if word := self._open[node].strip("'"):
                history[place] = self._model.extend(int(history[place]), word)
        self._model.read(history)
        return self._model.values(history) + self._model.sentence_ends(history)
