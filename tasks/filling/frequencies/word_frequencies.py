"""How often words occur in generic text: what ``unigram`` draws from, and what guessing by frequency would restore."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.kept_words import KeptWords
from tasks.filling.masked_lm.candidate_words import is_letter, is_word


@dataclass(frozen=True)
class WordFrequencies:
    """Cased words and their counts; entries that may not stand for a marker are left out, and single letters where they
    are not asked for."""

    words: tuple[str, ...]
    counts: np.ndarray
    """``(W,)`` int64."""
    groups: np.ndarray | None = None
    """``(W,)`` int64: words of which the text to be filled is known to have so many together, as counts of its masked
    words say (``counted_frequencies``); -1 where nothing is known. ``None``: nothing is."""

    @classmethod
    def of(cls, counts: Iterable[tuple[str, int]], *, letters: bool = False) -> "WordFrequencies":
        """Take the words of a word list, and with ``letters`` single letters too."""
        kept = [
            (word, count) for word, count in counts if count > 0 and (is_word(word) or (letters and is_letter(word)))
        ]
        numbers = np.array([count for _, count in kept], dtype=np.int64)
        numbers.setflags(write=False)  # 'read' gives the same object to all
        return cls(tuple(word for word, _ in kept), numbers)

    @classmethod
    def read(cls, path: str | Path, *, letters: bool = False) -> "WordFrequencies":
        """Read ``word_counts.tsv``; ``CorpusError`` where it is missing, damaged or holds no word.

        The last file is remembered for as long as it stays as it is: what learns and what fills both read it.
        """
        path = Path(path)
        state = path.stat() if path.is_file() else None
        return _read(path, letters, None if state is None else (state.st_ino, state.st_mtime_ns, state.st_size))

    def folded(self) -> set[str]:
        """The words, folded."""
        return set(map(fold, self.words))

    def off_list_probabilities(self, kept: KeptWords) -> dict[str, float]:
        """Folded word to the chance that a draw by frequency among the words off the list gives it."""
        counts: dict[str, int] = {}
        for word, count, allowed in zip(self.words, self.counts.tolist(), kept.off_list(self.words), strict=True):
            if allowed:
                folded = fold(word)
                counts[folded] = counts.get(folded, 0) + count
        total = sum(counts.values())
        return {word: count / total for word, count in counts.items()}

    def ranks(self) -> dict[str, int]:
        """Folded word to its rank by count, from 1; equal counts in the order of the words' code points."""
        counts: dict[str, int] = {}
        for word, count in zip(self.words, self.counts.tolist(), strict=True):
            folded = fold(word)
            counts[folded] = counts.get(folded, 0) + count
        order = sorted(counts, key=lambda word: (-counts[word], word))
        return {word: rank for rank, word in enumerate(order, start=1)}


@lru_cache(maxsize=1)
def _read(path: Path, letters: bool, _state: tuple[int, int, int] | None) -> WordFrequencies:
    frequencies = WordFrequencies.of(read_word_counts(path), letters=letters)
    if not frequencies.words:
        raise CorpusError(f"word counts {str(path)!r} hold no word; 'palimpsest count-words' makes them from a text")
    return frequencies
