"""All sequences of units or words that a beam search meets, as a tree: two equal sequences are the same node.

So sequences are compared by comparing two numbers, and what is computed of a sequence is computed once.
"""

import numpy as np

ROOT = 0
"""The empty sequence."""
_FIRST_CAPACITY = 1024


class SequenceTree:
    """Nodes by number; each but the root has a parent and the unit that it adds."""

    def __init__(self, units: int) -> None:
        self.units = units
        self._children: dict[int, int] = {}
        self._parent = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._unit = np.full(_FIRST_CAPACITY, -1, dtype=np.int64)
        self._length = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.size = 1

    @property
    def parent(self) -> np.ndarray:
        """Of each node (S,), int64; -1 for the root."""
        return self._parent[: self.size]

    @property
    def unit(self) -> np.ndarray:
        """That each node adds (S,), int64; -1 for the root."""
        return self._unit[: self.size]

    @property
    def length(self) -> np.ndarray:
        """Units of each node's sequence (S,), int64."""
        return self._length[: self.size]

    def children(self, nodes: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, int]:
        """The node of each sequence with one unit more (N,), and how many nodes there were before this call.

        Nodes that were not there are made; they are numbered from the second result on.
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
    """The next larger number of few: multiples of 4, from 32 on eight between two powers of two.

    oneDNN compiles a product for each number of rows that it meets, which takes ten times as long as a small product,
    and a search asks for another number at every step.
    """
    step = max(_LEAST_STEP, (1 << max(rows - 1, 1).bit_length() - 1) // _STEPS_BETWEEN_POWERS)
    return -(-rows // step) * step


def padded(indices: np.ndarray) -> np.ndarray:
    """Indices (N,) with the first one repeated up to a usual number; none stay none."""
    more = usual_count(len(indices)) - len(indices)
    return np.concatenate([indices, np.repeat(indices[:1], more)]) if more else indices
