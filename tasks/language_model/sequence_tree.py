"""``SequenceTree``: all sequences of units or words that a beam search meets; equal sequences are the same node.

Two sequences are compared by their node numbers, and results for a sequence are computed once.
"""

import numpy as np

ROOT = 0
"""Node of the empty sequence."""
_FIRST_CAPACITY = 1024


class SequenceTree:
    """Nodes by number; each node but the root has a parent and adds one unit."""

    def __init__(self, units: int) -> None:
        self.units = units
        self._children: dict[int, int] = {}
        self._parent = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._unit = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._length = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.size = 1

    @property
    def parent(self) -> np.ndarray:
        """Parent of each node (S,), int64; -1 for the root."""
        return self._parent[: self.size]

    @property
    def unit(self) -> np.ndarray:
        """Unit that each node adds (S,), int64; -1 for the root."""
        return self._unit[: self.size]

    @property
    def length(self) -> np.ndarray:
        """Number of units in each node's sequence (S,), int64."""
        return self._length[: self.size]

    def children(self, nodes: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, int]:
        """The node of each sequence with one more unit (N,), and the number of nodes before this call.

        Missing nodes are created, with numbers from the second result on.
        """
        before = self.size
        keys = (nodes * self.units + units).tolist()
        table = self._children
        found = [table.get(key, -1) for key in keys]
        if -1 in found:
            size = before
            fresh = []
            for index, node in enumerate(found):
                if node < 0:
                    key = keys[index]
                    node = table.setdefault(key, size)
                    if node == size:
                        size += 1
                        fresh.append(key)
                    found[index] = node
            self._add(np.array(fresh, dtype=np.int64), size)
        return np.array(found, dtype=np.int64), before

    def _add(self, keys: np.ndarray, size: int) -> None:
        while size > len(self._parent):
            self._parent, self._unit, self._length = (
                np.concatenate([table, np.zeros_like(table)]) for table in (self._parent, self._unit, self._length)
            )
        parents, units = np.divmod(keys, self.units)
        self._parent[self.size : size] = parents
        self._unit[self.size : size] = units
        self._length[self.size : size] = self._length[parents] + 1
        self.size = size

    def sequence(self, node: int) -> tuple[int, ...]:
        """The units from the root to a node."""
        found = []
        while node != ROOT:
            found.append(int(self._unit[node]))
            node = int(self._parent[node])
        return tuple(reversed(found))


_LEAST_STEP = 4
_STEPS_BETWEEN_POWERS = 8


def usual_count(rows: int) -> int:
    """Round a number of rows up to one of a few sizes: multiples of 4, and from 32 on eight between two powers of two.

    oneDNN compiles a product for each new number of rows, which takes ten times as long as a small product. A search
    has another number of rows at every step.
    """
    step = max(_LEAST_STEP, (1 << max(rows - 1, 1).bit_length() - 1) // _STEPS_BETWEEN_POWERS)
    return -(-rows // step) * step


def padded(indices: np.ndarray) -> np.ndarray:
    """Pad indices (N,) with the first one to a usual count; an empty array remains empty."""
    more = usual_count(len(indices)) - len(indices)
    return np.concatenate([indices, np.repeat(indices[:1], more)]) if more else indices
