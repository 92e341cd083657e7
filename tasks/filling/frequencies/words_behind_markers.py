"""The words behind the markers of a corpus, in a few numbers for each marker and each word's text once.

A corpus of a million sentences masks some millions of words; as Python's strings and lists they would take a hundred
bytes each, here it is twenty.
"""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, words_of


class WordsBehindMarkers:
    """M markers, in the order of the lines; each has one word at least."""

    def __init__(self, lines: Iterable[Sequence[MaskedSpan]]) -> None:
        """``lines``: the spans of every line of a sidecar; read once."""
        self._lines, self._ends, self._words = array("q"), array("q"), array("i")
        self.line_count = 0
        numbers: dict[str, int] = {}
        for number, spans in enumerate(lines):
            self.line_count += 1
            behind: dict[int, list[str]] = {}
            for span in spans:
                behind.setdefault(span.marker, []).extend(map(fold, words_of(span.original) or [span.original]))
            for words in behind.values():
                self._words.extend(numbers.setdefault(word, len(numbers)) for word in words)
                self._lines.append(number)
                self._ends.append(len(self._words))
        self._texts = list(numbers)

    @property
    def lines(self) -> np.ndarray:
        """The line of each marker, from 0: (M,) int64, ascending."""
        return np.array(self._lines, dtype=np.int64)

    def of(self, marker: int) -> list[str]:
        """The folded words behind a marker."""
        begin = self._ends[marker - 1] if marker else 0
        return [self._texts[word] for word in self._words[begin : self._ends[marker]]]

    def json_pieces(self, markers: np.ndarray) -> Iterator[str]:
        """The pieces of a JSON list of the words behind each of ``(N,)`` markers."""
        quoted = list(map(json.dumps, self._texts))
        for index, marker in enumerate(markers.tolist()):
            begin, end = self._ends[marker - 1] if marker else 0, self._ends[marker]
            yield f"{', ' if index else '['}[{', '.join(quoted[word] for word in self._words[begin:end])}]"
        yield "]" if len(markers) else "[]"
