"""Weights of a CRFsuite model, and the marginal probabilities of its labels for many lines at once.

CRFsuite's own tagger takes a string for each feature of each token, which is half of its time. Here the weights of a
word's features are added once, and lines of similar length share each step of the forward-backward algorithm.
The file format is that of CRFsuite 0.12: https://www.chokkan.org/software/crfsuite.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasks.errors import ModelError

_HEADER = struct.Struct("<4sI4sIIII5I")
"""Magic, size, kind, version, numbers of features, labels and attributes; offsets of these and of two lists."""
_FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
_FEATURES_HEADER = 12
_OF_STATE = 0
"""A feature of an attribute and a label; any other is of two labels."""
_LINES = 256


class CrfWeights:
    """The labels of a model and its weights, in double precision."""

    def __init__(self, path: Path) -> None:
        """Read the file; ``ModelError`` if it is no model of CRFsuite."""
        content = path.read_bytes()
        try:
            _, _, kind, _, _, _, _, at_features, at_labels, at_attributes, _, _ = _HEADER.unpack_from(content)
            if kind != b"FOMC":
                raise ValueError("other kind of model")
            number = struct.unpack_from("<I", content, at_features + 8)[0]
            features = np.frombuffer(content, _FEATURE, number, at_features + _FEATURES_HEADER)
            self.labels = _names(content, at_labels)
            self._rows = {name: row for row, name in enumerate(_names(content, at_attributes))}
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise ModelError(f"{str(path)!r} is no model of CRFsuite, or damaged; train it again") from error
        of_state = features[features["kind"] == _OF_STATE]
        of_labels = features[features["kind"] != _OF_STATE]
        # The weights of each feature, and after them the sums of groups.
        self._sums = np.zeros((2 * len(self._rows), len(self.labels)))
        self._sums[of_state["source"], of_state["label"]] = of_state["weight"]
        transitions = np.zeros((len(self.labels), len(self.labels)))
        transitions[of_labels["source"], of_labels["label"]] = of_labels["weight"]
        self._transitions = np.exp(transitions)
        self.forget()

    def forget(self) -> None:
        """Drop the sums of all groups."""
        self.groups = 0

    def add(self, group: tuple[str, ...]) -> int:
        """Add the weights of these features; return the number of their sum."""
        row = len(self._rows) + self.groups
        if row == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        self._sums[row] = self._sums[[self._rows[feature] for feature in group if feature in self._rows]].sum(axis=0)
        self.groups += 1
        return row

    def scores(self, line: Sequence[tuple[list[int], list[str]]]) -> np.ndarray:
        """The score of each label at each token (T, L); a token has sums of groups, and further features."""
        rows: list[int] = []
        begins, known = [], self._rows
        for groups, features in line:
            begins.append(len(rows))
            rows += groups
            rows += [known[feature] for feature in features if feature in known]
        return np.add.reduceat(self._sums[rows], begins)

    def marginals(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The probability of each label at each token of each line (T, L), for the scores of lines with tokens."""
        found = list(scores)
        longest_first = sorted(range(len(scores)), key=lambda number: -len(scores[number]))
        for begin in range(0, len(scores), _LINES):
            chosen = longest_first[begin : begin + _LINES]
            for number, marginals in zip(
                chosen, self._forward_backward([scores[each] for each in chosen]), strict=True
            ):
                found[number] = marginals
        return found

    def _forward_backward(self, scores: list[np.ndarray]) -> list[np.ndarray]:
        """The marginals of lines that are in descending order of length."""
        lengths = np.array([len(each) for each in scores])
        states = np.zeros((lengths[0], len(scores), len(self.labels)))
        for number, each in enumerate(scores):
            states[: len(each), number] = np.exp(each - each.max(axis=1, keepdims=True))
        forward = np.zeros_like(states)
        forward[0] = states[0] / states[0].sum(axis=1, keepdims=True)
        for time in range(1, len(states)):
            at = np.count_nonzero(lengths > time)
            forward[time, :at] = (forward[time - 1, :at] @ self._transitions) * states[time, :at]
            forward[time, :at] /= forward[time, :at].sum(axis=1, keepdims=True)
        backward = np.ones((len(scores), len(self.labels)))
        for time in range(len(states) - 1, 0, -1):
            at = np.count_nonzero(lengths > time)
            marginals = forward[time, :at] * backward[:at]
            forward[time, :at] = marginals / marginals.sum(axis=1, keepdims=True)
            backward[:at] = (backward[:at] * states[time, :at]) @ self._transitions.T
            backward[:at] /= backward[:at].max(axis=1, keepdims=True)
        forward[0] *= backward
        forward[0] /= forward[0].sum(axis=1, keepdims=True)
        return [forward[:length, number] for number, length in enumerate(lengths)]


def _names(content: bytes, at: int) -> list[str]:
    """The names of a database of CRFsuite (CQDB), by number."""
    chunk, _, _, _, number, offsets_at = struct.unpack_from("<4s5I", content, at)
    if chunk != b"CQDB":
        raise ValueError("no database of names")
    names = []
    for offset in struct.unpack_from(f"<{number}I", content, at + offsets_at):
        (size,) = struct.unpack_from("<I", content, at + offset + 4)
        names.append(content[at + offset + 8 : at + offset + 7 + size].decode("utf-8"))
    return names
