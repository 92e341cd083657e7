"""The list of kept words of a masking technique, as the off-list rule sees it (paper 3.2).

A technique that keeps the words of a list masks only words that are *not* on it, so a fill that is on the list cannot
be of the kind of the word it replaces. The file has one folded word a line; an empty file (entity tagger) means that
there is no list and every word may be a fill.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import fold


class KeptWords:
    """Folded words that a technique never masks; empty where a technique has no list."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words = frozenset(words)

    @classmethod
    def read(cls, path: str | Path | None) -> "KeptWords":
        """Read ``kept_words.txt``; ``None`` is no list. Raises ``CorpusError`` where the file cannot be read."""
        return cls() if path is None else cls(fold(line) for line in read_lines(path) if line.strip())

    def __bool__(self) -> bool:
        return bool(self._words)

    def __len__(self) -> int:
        return len(self._words)

    def holds(self, word: str) -> bool:
        """Whether the word, folded, is on the list."""
        return fold(word) in self._words

    def off_list(self, words: Iterable[str]) -> np.ndarray:
        """``(W,)`` booleans: which of the words are not on the list (all of them where there is none)."""
        return np.array([fold(word) not in self._words for word in words], dtype=bool)
