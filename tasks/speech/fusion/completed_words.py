"""A causal language model with pieces of its own inside the search over units: words are scored when they are complete.

Its pieces are not the recogniser's, so what it says of a word's beginning is not known, and nothing is looked ahead.
In its place stands a fixed cost of each letter, the same for all words; when the next unit begins a word the complete
one's own log-probability takes its place. So nothing is counted twice, and a finished sentence has the model's own
score. Complete words are asked for every few frames, all at once, and until then count by their letters.
"""

from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.fusion.prefix_score import NodeValues, PrefixScore, SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates

if TYPE_CHECKING:
    from torchaudio.models import RNNT

LETTER = 1.6
"""Nats that a letter of a word costs until the word is scored: what SmolLM2-135M gives the letters of right sentences
without case and punctuation (wrong ones: 2.7). With less, words that never end win the beam."""


class CompletedWords(PrefixScore):
    """See ``PrefixScore``."""

    exact = False

    def __init__(self, model: WholeWords, units: SpelledUnits) -> None:
        self._model, self._units = model, units
        # Apostrophes at either end of a word are none of its letters, as normalisation has it.
        self._letters = np.array([len(letters.replace("'", "")) for letters in units.letters])
        self._most = (-LETTER * self._letters).astype(np.float32)

    def start(self, tree: SequenceTree, states: PredictorStates, model: "RNNT") -> None:
        """Begin with a tree that holds the root alone."""
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
        """Ask the model for the complete words of these nodes (N,), in one call for each word of a sentence."""
        nodes = np.unique(nodes[~self._settled[nodes]])
        if len(nodes):
            histories = self._history[nodes]
            self._model.read(histories)
            self._value.put(nodes, self._model.values(histories) - LETTER * self._length[nodes])
            self._settled.put(nodes, np.ones(len(nodes), dtype=bool))

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of the complete words of each sequence less the cost of its open word's letters (N,)."""
        return self._value[nodes]

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        """The same (N,), with words that are not settled at the cost of their letters."""
        return np.where(self._settled[nodes], self._value[nodes], self._estimate[nodes])

    def of_units(self, nodes: np.ndarray) -> np.ndarray:
        """What the letters of each unit cost (V - 1,)."""
        return self._most

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The letters cost, and behind a complete word that is an estimate."""
        found = np.where(estimated, self.estimates(nodes), self._value[nodes]) - LETTER * self._letters[units]
        self._is_estimate = estimated | (self._units.begins[units] & (self._length[nodes] > 0))
        return found, self._is_estimate

    def keep(self, chosen: np.ndarray, nodes: np.ndarray) -> None:
        """Of what ``ahead`` was asked last, these (M,) are nodes now: those that are no estimates need no model."""
        self.settle(nodes[~self._is_estimate[chosen]])

    def finish(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        history = self._history[nodes]
        for place, node in enumerate(nodes.tolist()):
            if word := self._open[node].strip("'"):
                history[place] = self._model.extend(int(history[place]), word)
        self._model.read(history)
        return self._model.values(history) + self._model.sentence_ends(history)
