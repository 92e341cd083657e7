"""Which words may be written in the place of a marker, whatever writes them.

A substitute is read by people, and stands where a word stood:

- It is no strong word and no slur: those of ``strong_words.txt``, one a line and folded, with their inflections, are
  looked up as whole words. Words that are as often a name or something harmless (``randy``, ``queer``, ``cracker``) are
  not on that list.
- Where a word is wanted it is of letters, with apostrophes or hyphens inside at most: ``51,739``, ``2:25-38`` and
  ``B2B`` are none. A figure is wanted where the text right beside the marker says so (``$[MASK]``, ``[MASK]%``,
  ``[MASK]:30``), and a marker of a class that may be written in figures takes either.

Surrogates that know their original go by its form instead, and by its class (``surrogates``).
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.masked_sentence import MaskedSentence

Wanted = Literal["word", "figure", "either"]
_STRONG_WORDS = Path(__file__).parent / "strong_words.txt"
_IN_FIGURES = frozenset(("DATE", "NUMBER", "MONEY", "CONTACT", "IDENTIFIER"))
_INSIDE = frozenset("'’ʼ-‐")
_FIGURE = re.compile(r"\d[\d.,:/\-]*")
_FIGURE_BEHIND = re.compile(r"(?:[$€£¥₹#+]|\d[.,:/\-])$")
_FIGURE_BEFORE = re.compile(r"[%°]|[.,:/\-]\d| ?[ap]\.?m\b| ?o'clock\b", re.IGNORECASE)


def wanted(sentence: MaskedSentence, slot: int) -> Wanted:
    """What is to stand in a slot, by its class and by the text right beside it."""
    if sentence.slots[slot].label in _IN_FIGURES:
        return "either"
    behind, before = sentence.texts[slot], sentence.texts[slot + 1]
    return "figure" if _FIGURE_BEHIND.search(behind[-2:]) or _FIGURE_BEFORE.match(before) else "word"


def unwanted(words: Sequence[str]) -> dict[Wanted, np.ndarray]:
    """For each that may be wanted, the indices of the words that are none; nothing where all would be none."""
    letters = np.array([word.isalpha() or is_of_letters(word) for word in words], dtype=bool)
    figures = np.zeros(len(words), dtype=bool)
    figures[~letters] = [fits(words[index], "figure") for index in np.flatnonzero(~letters).tolist()]
    none = np.zeros(0, dtype=np.int64)
    return {
        "word": np.flatnonzero(~letters) if letters.any() else none,
        "figure": np.flatnonzero(~figures) if figures.any() else none,
        "either": none,
    }


def fits(word: str, want: Wanted) -> bool:
    """Whether a word is what is wanted."""
    return want == "either" or (is_of_letters(word) if want == "word" else bool(_FIGURE.fullmatch(word)))


def is_strong(word: str) -> bool:
    """Whether a word, in whatever case, is a strong word or a slur."""
    return fold(word) in strong_words()


def is_of_letters(word: str) -> bool:
    """Whether a word is of letters, with apostrophes or hyphens inside at most."""
    return word.isalpha() or all(
        unicodedata.category(character)[0] in "LM" or (character in _INSIDE and 0 < place < len(word) - 1)
        for place, character in enumerate(word)
    )


def has_stray_mark(word: str) -> bool:
    """Whether a mark stands on a letter from a to z: where a script writes these with marks, both are one character."""
    return any(letter.isascii() and unicodedata.category(mark)[0] == "M" for letter, mark in pairwise(word))


def is_latin(word: str) -> bool:
    """Whether all letters of a word are of the Latin script."""
    return word.isascii() or all(
        unicodedata.name(character, "").startswith("LATIN") for character in word if character.isalpha()
    )


@lru_cache(maxsize=1)
def strong_words() -> frozenset[str]:
    """All of them, folded."""
    return frozenset(_STRONG_WORDS.read_text(encoding="utf-8").split())
