"""Masked shares by language: how much of each language a technique masks, and a warning where that is uneven.

This module must not import numpy, since every masking imports it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.languages.word_languages import TaggedLine

_UNEVEN, _MUCH = 2, 0.1
"""Ratio of masked shares from which a language counts as masked unevenly, and the least such share."""


@dataclass
class MaskedWords:
    """Counts of words and masked words of each language, for one technique; words as in ``tasks.corpora.words``."""

    languages: Sequence[str]
    words: Counter[str | None] = field(default_factory=Counter)
    masked: Counter[str | None] = field(default_factory=Counter)

    def add(self, line: str, tagged: "TaggedLine", masked: Iterable[int]) -> None:
        """Count a line; ``masked``: offsets of its masked words."""
        starts = set(masked)
        for start, language in tagged.by_start(line).items():
            self.words[language] += 1
            self.masked[language] += start in starts

    @property
    def shares(self) -> dict[str, float]:
        """Masked share of the words of each language that occurs."""
        return {code: self.masked[code] / self.words[code] for code in self.languages if self.words[code]}

    def fields(self) -> dict[str, Any]:
        """The entries of a report."""
        shares = self.shares.values()
        return {
            "masked_by_language": self.shares,
            "most_masked_language": max(shares, default=None),
            "least_masked_language": min(shares, default=None),
        }

    def warnings(self) -> list[str]:
        """One sentence where a language is masked much more than another."""
        shares = self.shares
        if not shares or max(shares.values()) <= max(_UNEVEN * min(shares.values()), _MUCH):
            return []
        shown = ", ".join(f"{code} {share:.1%}" for code, share in shares.items())
        return [
            f"one language is masked more than {_UNEVEN} times as much as another ({shown}); use a technique that "
            "knows both languages, such as language_lists"
        ]
