"""The hypotheses of a frame that have emitted blank, and which of them are the best."""

import numpy as np

from tasks.speech.search.prefix_tree import ROOT


class EndedHypotheses:
    """The hypotheses of each utterance that have emitted blank at a frame, as (N, W)."""

    def __init__(self, utterances: int, width: int) -> None:
        self.nodes = np.full((utterances, width), ROOT)
        self.scores = np.full((utterances, width), -np.inf)
        self.estimated = np.zeros((utterances, width), dtype=bool)
        self._counts = np.zeros(utterances, dtype=np.int64)

    def add(self, utterance: np.ndarray, nodes: np.ndarray, estimated: np.ndarray, scores: np.ndarray) -> None:
        """Add hypotheses (M,), those of one utterance side by side; equal ones become one."""
        taken = np.arange(self.nodes.shape[1]) < self._counts[utterance][:, None]  # (M, W)
        same = (self.nodes[utterance] == nodes[:, None]) & taken
        there = same.any(axis=1)
        if there.any():
            place = utterance[there], same[there].argmax(axis=1)
            self.scores[place] = np.logaddexp(self.scores[place], scores[there])
            utterance, nodes, estimated, scores = (part[~there] for part in (utterance, nodes, estimated, scores))
        if not len(nodes):
            return
        column = self._counts[utterance] + _rank_within(utterance)
        if (more := int(column.max()) + 1 - self.nodes.shape[1]) > 0:
            rows = len(self.nodes)
            self.nodes = np.concatenate([self.nodes, np.full((rows, more), ROOT)], axis=1)
            self.scores = np.concatenate([self.scores, np.full((rows, more), -np.inf)], axis=1)
            self.estimated = np.concatenate([self.estimated, np.zeros((rows, more), dtype=bool)], axis=1)
        self.nodes[utterance, column] = nodes
        self.scores[utterance, column] = scores
        self.estimated[utterance, column] = estimated
        self._counts += np.bincount(utterance, minlength=len(self._counts))

    def take(self, columns: np.ndarray) -> None:
        """Keep these columns (N, W) of each row."""
        for name in ("nodes", "scores", "estimated"):
            setattr(self, name, np.take_along_axis(getattr(self, name), columns, axis=1))


def _rank_within(groups: np.ndarray) -> np.ndarray:
    """Place of each entry among the entries of its group (M,), from 0; the entries of a group stand side by side."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    return np.arange(len(groups)) - np.repeat(begins, np.diff(np.append(begins, len(groups))))


def smallest_of_best(scores: np.ndarray, width: int) -> np.ndarray:
    """The ``width``-th best score of each row (N,); minus infinity where there are fewer."""
    if scores.shape[1] < width:
        return np.full(len(scores), -np.inf)
    return np.partition(scores, scores.shape[1] - width, axis=1)[:, scores.shape[1] - width]


def best_of_each(owner: np.ndarray, scores: np.ndarray, least: np.ndarray, width: int) -> np.ndarray:
    """Indices of the ``width`` best candidates of each owner that are better than its ``least``, side by side."""
    inside = np.flatnonzero(scores > least[owner])
    order = inside[np.lexsort((-scores[inside], owner[inside]))]
    return order[_rank_within(owner[order]) < width] if len(order) else order


def best_columns(scores: np.ndarray, width: int) -> np.ndarray:
    """Columns of the ``width`` best scores of each row (N, W), in no order; all where there are fewer."""
    if scores.shape[1] <= width:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.argpartition(-scores, width - 1, axis=1)[:, :width]
