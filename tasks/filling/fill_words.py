"""Words that are allowed at a marker, for every method.

- It is no strong word and no slur of ``strong_words.txt`` (folded, with inflections). Words that are as often a name or
  harmless are not in it.
- A word has only letters, with apostrophes or hyphens inside. A marker takes a figure if the adjacent text shows this
  (``$[MASK]``, ``[MASK]%``, ``[MASK]:30``). A marker of a class that has figures takes both.

Surrogates with an original follow its form and class instead (``surrogates``).
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
_LEFT_OF_FIGURE = re.compile(r"(?:[$€£¥₹#+]|\d[.,:/\-])$")
_RIGHT_OF_FIGURE = re.compile(r"[%°]|[.,:/\-]\d| ?[ap]\.?m\b| ?o'clock\b", re.IGNORECASE)


def wanted(sentence: MaskedSentence, slot: int) -> Wanted:
    """Whether a slot takes a word, a figure or either, by its class and the adjacent text."""
    if sentence.slots[slot].label in _IN_FIGURES:
        return "either"
    left, right = sentence.texts[slot], sentence.texts[slot + 1]
    return "figure" if _LEFT_OF_FIGURE.search(left[-2:]) or _RIGHT_OF_FIGURE.match(right) else "word"


def unwanted(words: Sequence[str]) -> dict[Wanted, np.ndarray]:
    """The indices of the words that do not fit, for each value of ``Wanted``; empty if no word fits."""
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
    """Whether a word fits a slot."""
    return want == "either" or (is_of_letters(word) if want == "word" else bool(_FIGURE.fullmatch(word)))


def is_strong(word: str) -> bool:
    """Whether a word is a strong word or a slur, in any case."""
    return fold(word) in strong_words()


def is_of_letters(word: str) -> bool:
    """Whether a word has only letters, with apostrophes or hyphens inside."""
    return word.isalpha() or all(
        unicodedata.category(character)[0] in "LM" or (character in _INSIDE and 0 < place < len(word) - 1)
        for place, character in enumerate(word)
    )


def has_stray_mark(word: str) -> bool:
    """Whether a letter from a to z has a combining mark. Scripts with such letters write both as one character."""
    return any(letter.isascii() and unicodedata.category(mark)[0] == "M" for letter, mark in pairwise(word))


def is_latin(word: str) -> bool:
    """Whether all letters of a word are Latin."""
    return word.isascii() or all(
        unicodedata.name(character, "").startswith("LATIN") for character in word if character.isalpha()
    )


@lru_cache(maxsize=1)
def strong_words() -> frozenset[str]:
    """All strong words, folded."""
    return frozenset(_STRONG_WORDS.read_text(encoding="utf-8").split())
