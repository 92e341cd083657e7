"""Words that a causal language model may write at a slot: words of a language, of a marker's class, or of a form.

The search for candidates is restricted to words of the slot's kind. So the context chooses a name among names, and a
plural among plurals. A masked language model scores all of its words at once; ``surrogates.class_check`` restricts it.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.causal_lm.language_model import CausalWords
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.surrogates.class_check import FEWEST_WORDS, ClassWords
from tasks.filling.surrogates.words_by_frequency import Form, form_of

Kind = str | Form | None
"""Restriction of a fill: a language, the class of a marker, or the form of a masked word; ``None`` for none."""


def words_of_kind(frequencies: WordFrequencies, class_words: ClassWords, kind: Kind) -> Collection[str] | None:
    """The folded words of a class or form; ``None`` if they are too few for a restriction."""
    words = frequencies.words
    if isinstance(kind, str):
        mask = class_words.allowed(words, kind)
        found = {fold(words[index]) for index in np.flatnonzero(mask)} if mask is not None else set()
    else:
        found = _words_of_forms(words, frozenset(class_words.forms)).get(kind, set())
    return found if len(found) >= FEWEST_WORDS else None


@lru_cache(maxsize=1)
def _words_of_forms(words: tuple[str, ...], with_capital: frozenset[str]) -> Mapping[Kind, set[str]]:
    """The folded words of every form; ``with_capital``: the folded words that are written with a capital."""
    found: dict[Kind, set[str]] = {}
    for word in words:
        folded = fold(word)
        found.setdefault(form_of(word, has_capital=folded in with_capital), set()).add(folded)
    return found


class WordsOfKinds(dict[Kind, CausalWords]):
    """The words that a model can write, by kind; the words of a kind are collected at its first use.

    ``None`` has the whole vocabulary.
    """

    def __init__(
        self,
        words: CausalWords,
        spoken: Mapping[str, Collection[str]],
        known: tuple[WordFrequencies, ClassWords] | None,
    ) -> None:
        """``spoken``: the words of each language. ``known``: the words of classes and forms, if fills follow them."""
        super().__init__({code: words.among(those, code) for code, those in spoken.items()})
        self[None], self._known = words, known

    def __missing__(self, kind: Kind) -> CausalWords:
        found = words_of_kind(*self._known, kind) if self._known is not None else None
        self[kind] = self[None] if found is None else self[None].among(found)
        return self[kind]
