"""How many words unit sequences have begun: what the insertion bonus is given for."""

import numpy as np

from tasks.speech.fusion.prefix_score import NodeValues
from tasks.speech.fusion.spelled_units import SpelledUnits
from tasks.speech.search.prefix_tree import PrefixTree


class WordCounts:
    """Words begun by each node of a prefix tree; a word begins with its first letter."""

    def __init__(self, units: SpelledUnits) -> None:
        self._units = units

    def start(self, tree: PrefixTree) -> None:
        """Begin with a tree that holds the root alone."""
        self._tree = tree
        self._words, self._inside = NodeValues(np.int64), NodeValues(bool)

    def extend(self, first: int) -> None:
        """Nodes from ``first`` on are new."""
        parents, units = self._tree.parent[first:], self._tree.unit[first:]
        inside = self._inside[parents] & ~self._units.begins[units]
        opens = self._units.has_letters[units] & ~inside
        self._words.set(first, self._words[parents] + opens)
        self._inside.set(first, inside | opens)

    def opened(self, nodes: np.ndarray, units: np.ndarray | None = None) -> np.ndarray:
        """Whether each unit begins a word behind each node (N, V), or one of the ``units`` behind each (N,)."""
        inside = self._inside[nodes]
        if units is None:
            begins, inside = self._units.begins, inside[:, None]
            return self._units.has_letters & (begins | ~inside)
        return self._units.has_letters[units] & (self._units.begins[units] | ~inside)

    def values(self, nodes: np.ndarray) -> np.ndarray:
        """Words of each node (N,), int64."""
        return self._words[nodes]
