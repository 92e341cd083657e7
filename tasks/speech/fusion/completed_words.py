"""A causal language model with its own tokens inside the search over units: it scores complete words (decision 0023).

Until a word is complete, each letter has a fixed cost, equal for all words. When the next unit begins a word, the
complete word's log-probability replaces its letter costs. So a finished sentence has the model's own score. Complete
words are scored every few frames, all at once, and have their letter costs until then.
"""

import numpy as np

from tasks.language_model.causal_lm.next_words import WholeWords
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.fusion.unit_scorers import SpelledUnits
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.scorer import Scorer

LETTER = 1.6
"""Cost of a letter in nats until the word is scored: SmolLM2-135M's average for the letters of correct sentences
without case and punctuation (wrong ones: 2.7). At a lower cost, words that never end win the beam."""


class CompletedWords(Scorer):
    """Log-probability of the complete words, less the letter costs of the open word.

    An estimate has letter costs for complete words that are not scored yet.
    """

    columns = np.dtype([("history", "i8"), ("length", "i8"), ("value", "f8"), ("estimate", "f8"), ("settled", "?")])

    def __init__(self, model: WholeWords, units: SpelledUnits) -> None:
        self._model, self._units = model, units
        # Apostrophes at either end of a word are no letters, as in normalisation.
        self._letters = np.array([len(letters.replace("'", "")) for letters in units.letters])

    def start(self, tree: SequenceTree, states: PredictorStates) -> None:
        """Start with a tree that has only the root."""
        super().start(tree, states)
        self._model.start()
        self._open: list[str] = [""]
        self.nodes["settled"][ROOT] = True

    def extend(self, first: int) -> None:
        """Spell the words of the nodes from ``first`` on, and estimate their values."""
        parents, units = self.tree.parent[first:], self.tree.unit[first:]
        before, new = self.nodes[parents], self.nodes[parents]
        for place, (parent, unit) in enumerate(zip(parents.tolist(), units.tolist(), strict=True)):
            letters = self._open[parent]
            if self._units.begins[unit]:
                new["history"][place] = self._closed(int(before["history"][place]), letters)
                letters = ""
            self._open.append(letters + self._units.letters[unit])
        cost = LETTER * self._letters[units]
        new["length"] = np.where(self._units.begins[units], 0, before["length"]) + self._letters[units]
        new["value"] = before["value"] - cost
        new["estimate"] = np.where(before["settled"], before["value"], before["estimate"]) - cost
        new["settled"] = before["settled"] & (new["history"] == before["history"])
        self.add(first, new)

    def _closed(self, history: int, letters: str) -> int:
        """The history after the open word, if it has a letter."""
        word = letters.strip("'")
        return self._model.extend(history, word) if word else history

    def settle(self, nodes: np.ndarray) -> None:
        """Score the complete words of these nodes (N,) with the model, in one call for each word of a sentence."""
        nodes = np.unique(nodes[~self.nodes["settled"][nodes]])
        if len(nodes):
            histories = self.nodes["history"][nodes]
            self._model.read(histories)
            self.nodes["value"][nodes] = self._model.values(histories) - LETTER * self.nodes["length"][nodes]
            self.nodes["settled"][nodes] = True

    def values(self, nodes: np.ndarray, estimated: np.ndarray) -> np.ndarray:
        """Score of each sequence (N,); settled nodes have no other estimate."""
        of_nodes = self.nodes[nodes]
        return np.where(estimated & ~of_nodes["settled"], of_nodes["estimate"], of_nodes["value"])

    def bounds(self, nodes: np.ndarray) -> np.ndarray:
        """Negative letter costs of each unit (1, V - 1)."""
        return (-LETTER * self._letters).astype(np.float32)[None]

    def ahead(self, nodes: np.ndarray, units: np.ndarray, estimated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values less the letter costs of the units; estimates after a complete word."""
        closes = self._units.begins[units] & (self.nodes["length"][nodes] > 0)
        return self.values(nodes, estimated) - LETTER * self._letters[units], estimated | closes

    def end(self, nodes: np.ndarray) -> np.ndarray:
        """Log-probability of each sequence as a whole sentence (N,)."""
        before = self.nodes["history"][nodes].tolist()
        history = np.array([self._closed(*each) for each in zip(before, (self._open[n] for n in nodes), strict=True)])
        self._model.read(history)
        return self._model.values(history) + self._model.sentence_ends(history)
