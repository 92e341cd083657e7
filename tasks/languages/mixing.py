"""Indices of code-mixing of a line and of a corpus.

All cover the words that have a language. Mixed words, names, punctuation and undetermined words have none, so
undetermined words are never the majority. Each function gives its definition and source.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from tasks.languages.word_languages import MIXED, NAME

_NONE = (None, MIXED, NAME)
"""Tags of words without a language for code-mixing."""


def spoken(languages: Iterable[str | None]) -> list[str]:
    """The languages of the words that have one."""
    return [language for language in languages if language is not None and language not in _NONE]


def code_mixing_index(languages: Sequence[str | None]) -> float:
    """100 (1 - most / n): the percentage of words outside the line's main language, among the n words with a language.
    It is 0 for n = 0 (Das and Gambäck 2014, equation 1)."""
    words = spoken(languages)
    return 100 * (1 - max(Counter(words).values()) / len(words)) if words else 0.0


def multilingual_index(counts: Sequence[int]) -> float | None:
    """(1 - sum p^2) / ((k - 1) sum p^2) of k languages: 0 for one language, 1 for equal shares (Barnett et al. 2000).

    ``counts``: words of each language. ``None`` without words or with one language.
    """
    shares = np.array(counts, dtype=np.float64)
    if len(shares) < 2 or not shares.sum():
        return None
    squares = float(((shares / shares.sum()) ** 2).sum())
    return (1 - squares) / ((len(shares) - 1) * squares)


def switch_points(languages: Sequence[str | None]) -> list[int]:
    """The places of words whose language differs from the last word before them that has one."""
    found, last = [], None
    for place, language in enumerate(languages):
        if language in _NONE:
            continue
        if last is not None and language != last:
            found.append(place)
        last = language
    return found


def near_switches(languages: Sequence[str | None]) -> set[int]:
    """The places of both words at each switch point: the last one before it, and the first one after it."""
    found = set()
    for place in switch_points(languages):
        before = next(at for at in range(place - 1, -1, -1) if languages[at] not in (None, MIXED))
        found |= {before, place}
    return found


def islands(languages: Sequence[str | None]) -> list[int]:
    """The number of words of each stretch in one language."""
    return [len(list(words)) for _, words in groupby(spoken(languages))]


def burstiness(lengths: Sequence[int]) -> float | None:
    """(s - m) / (s + m) of the lengths of islands, with mean m and standard deviation s. It is -1 for equal lengths and
    near 1 where a few are long (Goh and Barabasi 2008; Guzman et al. 2017); ``None`` for fewer than two."""
    if len(lengths) < 2:
        return None
    mean, deviation = float(np.mean(lengths)), float(np.std(lengths))
    return (deviation - mean) / (deviation + mean)


@dataclass
class Mixing:
    """Counts of a corpus, for all indices."""

    languages: tuple[str, ...]
    lines: int = 0
    mixed_lines: int = 0
    """Number of lines with words of at least two languages."""
    words: Counter[str | None] = field(default_factory=Counter)
    switches: int = 0
    pairs: int = 0
    """Number of pairs of neighbouring words with a language, within lines."""
    index: float = 0.0
    """Sum of the lines' code-mixing index."""
    lengths: list[int] = field(default_factory=list)

    def add(self, languages: Sequence[str | None]) -> None:
        """Count a line."""
        words, lengths = spoken(languages), islands(languages)
        self.lines += 1
        self.words.update(languages)
        self.mixed_lines += len(set(words)) > 1
        self.switches += max(len(lengths) - 1, 0)
        self.pairs += max(len(words) - 1, 0)
        self.index += code_mixing_index(languages)
        self.lengths += lengths

    def fields(self) -> dict[str, object]:
        """The entries of a report; undefined ones are ``None``."""
        total = sum(self.words.values())
        by_language = [self.words[language] for language in self.languages]
        return {
            "lines": self.lines,
            "words": total,
            "word_share": {
                language: self.words[language] / total if total else None for language in (*self.languages, MIXED)
            },
            "name_share": self.words[NAME] / total if total else None,
            "no_language_share": self.words[None] / total if total else None,
            "mixed_line_share": self.mixed_lines / self.lines if self.lines else None,
            "code_mixing_index": self.index / self.lines if self.lines else None,
            "multilingual_index": multilingual_index(by_language),
            "switch_points": self.switches,
            "integration_index": self.switches / self.pairs if self.pairs else None,
            "burstiness": burstiness(self.lengths),
            "islands": len(self.lengths),
            "mean_island": float(np.mean(self.lengths)) if self.lengths else None,
            "island_lengths": {str(length): count for length, count in sorted(Counter(self.lengths).items())},
        }
