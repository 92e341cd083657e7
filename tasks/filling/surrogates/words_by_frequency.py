"""Words by frequency for markers without a class, in the form of the masked word.

A word gets one with the same ending (-s, -ed, -ing, -ly, an apostrophe inside, or none of these) and the same case. All
words of the form, the original included, are drawn in proportion to their frequency (decision 0044).
"""

import random
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_of_letters
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.masked_sentence import Form, MaskedSentence, same_word, spans_of_slots, starts_sentence

_ENDINGS = {"ing": re.compile(r"[aeiouy].*ing$"), "ed": re.compile(r"[aeiouy].*[^e]ed$"), "ly": re.compile(r"...ly$")}
_PLURAL = re.compile(r"..[^siu']s$")
_FEWEST_OF_FORM = 100
"""A form with fewer words is replaced by words of any form."""


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
    """Words of letters by form, without never-masked words."""

    def __init__(self, frequencies: WordFrequencies, off_list: np.ndarray) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``. Raises ``CorpusError`` if none is true."""
        if not off_list.any():
            raise CorpusError("every word of the word counts is on the list of never-masked words: nothing to draw")
        of_letters = off_list & np.array([is_of_letters(word) for word in frequencies.words])
        self._allowed = np.flatnonzero(of_letters if of_letters.any() else off_list)
        self._frequencies = frequencies
        self._pools: dict[Form, tuple[np.ndarray, np.ndarray]] = {}

    @cached_property
    def _forms(self) -> Sequence[Form]:
        """The form of each allowed word."""
        words = [self._frequencies.words[index] for index in self._allowed]
        return [form_of(word, has_capital=fold(word) in self._frequencies.usual_forms) for word in words]

    def has_capital(self, folded: str) -> bool | None:
        """Whether a folded word is nearly always written with a capital; ``None`` for an unknown word."""
        return folded in self._frequencies.usual_forms if folded in self._frequencies.folded else None

    def draw(self, random_numbers: random.Random, form: Form = ()) -> str:
        """A word of the form in its usual spelling, of a wider form if there are too few; ``()`` is the form of all."""
        indices, cumulated = self._pool(form)
        ticket = random_numbers.randrange(int(cumulated[-1]))
        word = self._frequencies.words[int(indices[np.searchsorted(cumulated, ticket, side="right")])]
        return self._frequencies.usual_forms.get(fold(word), same_word(word, word.lower()))

    def _pool(self, form: Form) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the words, and their cumulated counts."""
        if form not in self._pools:
            indices = self._allowed[[each[: len(form)] == form for each in self._forms]]
            if form and indices.size < (_FEWEST_OF_FORM if len(form) > 1 else 1):
                self._pools[form] = self._pool(form[:-1])
            else:
                self._pools[form] = (indices, np.cumsum(self._frequencies.counts[indices]))
        return self._pools[form]
