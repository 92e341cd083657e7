"""Words by frequency for markers without a class, in the form of the masked word.

Figures replace figures, and an address replaces an address. A word gets one with the same ending (-s, -ed, -ing, -ly,
an apostrophe inside, or none of these) and the same case. So a reader of the text learns this form, but no more of the
word. All words of the form, the original included, are drawn in proportion to their frequency (decision 0044).
"""

import random
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_of_letters
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.masked_sentence import MaskedSentence, same_word, spans_of_slots, starts_sentence, usual_forms

_ENDINGS = {"ing": re.compile(r"[aeiouy].*ing$"), "ed": re.compile(r"[aeiouy].*[^e]ed$"), "ly": re.compile(r"...ly$")}
_PLURAL = re.compile(r"..[^siu']s$")
_FEWEST_OF_FORM = 100
"""A form with fewer words is replaced by words of any form."""
Shape = Literal["small", "capital"]


def ending_of(word: str) -> str:
    """The ending that a word shares with words of its form: ``s``, ``ed``, ``ing``, ``ly``, an apostrophe, or nothing.

    It goes by the letters alone: ``thing`` has no ending, since no vowel is before it, and ``news`` has one.
    """
    folded = fold(word)
    if "'" in folded[1:-1]:
        return "'"
    if folded.endswith("s"):
        return "s" if _PLURAL.search(folded) else ""
    return next((ending for ending, form in _ENDINGS.items() if folded.endswith(ending) and form.search(folded)), "")


Form = tuple[str, ...]
"""Form that a word without a class shares with its substitute: figures, a capital, or small letters and an ending."""


def form_of(word: str, *, has_capital: bool) -> Form:
    """The form of a word; ``has_capital``: whether it is nearly always written with a capital."""
    if any(map(str.isdigit, word)):
        return ("figures",)
    return ("capital",) if has_capital else ("small", ending_of(word))


def forms_of_slots(sentence: MaskedSentence, forms: Mapping[str, str]) -> list[Form | None]:
    """The form of the masked word of each slot, of the last one if there are several; ``None`` without a sidecar."""
    found: list[Form | None] = []
    for slot, (text, spans) in enumerate(zip(sentence.texts, spans_of_slots(sentence), strict=False)):
        if not spans:
            found.append(None)
            continue
        word = spans[-1].original
        inside = slot > 0 or len(spans) > 1
        named = word[:1].isupper() and not word[1:].isupper() and (inside or not starts_sentence(text, first=slot == 0))
        found.append(form_of(word, has_capital=named or fold(word) in forms))
    return found


class WordsByFrequency:
    """Words of letters, without never-masked words, by shape and ending."""

    def __init__(self, frequencies: WordFrequencies, off_list: np.ndarray | None) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``. Raises ``CorpusError`` if none is true."""
        allowed = np.ones(len(frequencies.words), dtype=bool) if off_list is None else off_list
        if not allowed.any():
            raise CorpusError("every word of the word counts is on the list of never-masked words: nothing to draw")
        of_letters = allowed & np.array([is_of_letters(word) for word in frequencies.words])
        self._allowed = of_letters if of_letters.any() else allowed
        self._frequencies, self._words = frequencies, frequencies.words
        self._pools: dict[tuple[Shape | None, str | None], tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def _forms(self) -> tuple[set[str], dict[str, str]]:
        """All folded words, and the usual forms of the words that are nearly always written with a capital."""
        return self._frequencies.folded(), usual_forms(self._frequencies.items())

    @cached_property
    def _has_capital(self) -> np.ndarray:
        """``(W,)`` booleans: whether a word is nearly always written with a capital."""
        return np.array([fold(word) in self._forms[1] for word in self._words], dtype=bool)

    @cached_property
    def _endings(self) -> np.ndarray:
        """``(W,)`` endings of the words."""
        return np.array([ending_of(word) for word in self._words])

    def usual_shape(self, folded: str) -> Shape | None:
        """The usual shape of a folded word, the same for all its spellings; ``None`` for an unknown word."""
        known, capital = self._forms
        return "capital" if folded in capital else "small" if folded in known else None

    def draw(self, random_numbers: random.Random, shape: Shape | None, ending: str | None = None) -> str:
        """A word of the shape and the ending in its usual form; of a wider form if there are too few such words."""
        indices, cumulated = self._pool(shape, ending)
        ticket = random_numbers.randrange(int(cumulated[-1]))
        word = self._words[int(indices[np.searchsorted(cumulated, ticket, side="right")])]
        return self._forms[1].get(fold(word), same_word(word, word.lower()))

    def _pool(self, shape: Shape | None, ending: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the words, and their cumulated counts."""
        if (shape, ending) not in self._pools:
            chosen = self._allowed if shape is None else self._allowed & (self._has_capital == (shape == "capital"))
            of_ending = chosen if ending is None else chosen & (self._endings == ending)
            if ending is None or np.count_nonzero(of_ending) >= _FEWEST_OF_FORM:
                chosen = of_ending
            indices = np.flatnonzero(chosen if chosen.any() else self._allowed)
            self._pools[shape, ending] = (indices, np.cumsum(self._frequencies.counts[indices]))
        return self._pools[shape, ending]
