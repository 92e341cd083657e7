"""Which words a causal language model may write at a slot: those of a language, of a marker's class, or of a form.

Candidates are looked for among the words of the slot's kind alone, so that a name is chosen among names by what stands
round it, and a plural among plurals. A masked language model, which scores all of its words at once, is held to the
same by ``surrogates.class_check``.
"""

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.causal_lm.language_model import CausalWords
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.masked_sentence import MaskedSentence
from tasks.filling.surrogates.class_check import FEWEST_WORDS, ClassWords, kinds_of_slots
from tasks.filling.surrogates.words_by_frequency import Form, form_of

Kind = str | Form | None
"""A language, or the class of a marker, or the form of a masked word, to which a fill is held; ``None``: to nothing."""
Words = Mapping[Kind, CausalWords]
"""The words of each kind; of ``None`` all of the vocabulary."""


class WordKinds:
    """The words of each class of marker and form of word, and which kind the slots of a sentence have."""

    def __init__(self, frequencies: WordFrequencies, class_words: ClassWords) -> None:
        self._words, self._class_words = frequencies.words, class_words

    @cached_property
    def _of_forms(self) -> dict[Kind, set[str]]:
        found: dict[Kind, set[str]] = {}
        for word in self._words:
            folded = fold(word)
            found.setdefault(form_of(word, has_capital=folded in self._class_words.forms), set()).add(folded)
        return found

    def words_of(self, kind: Kind) -> Collection[str] | None:
        """The folded words of a kind; ``None`` where there are too few to hold fills to them."""
        if isinstance(kind, str):
            mask = self._class_words.allowed(self._words, kind)
            found = {fold(self._words[index]) for index in np.flatnonzero(mask)} if mask is not None else set()
        else:
            found = self._of_forms.get(kind, set())
        return found if len(found) >= FEWEST_WORDS else None

    def of_slots(self, sentence: MaskedSentence) -> list[Kind]:
        """As ``kinds_of_slots``."""
        return kinds_of_slots(sentence, self._class_words.forms)


class WordsOfKinds(dict[Kind, CausalWords]):
    """The words that a model can write, by the kind to which a fill is held; each found when it is first wanted."""

    def __init__(self, words: CausalWords, spoken: Mapping[str, Collection[str]], kinds: WordKinds | None) -> None:
        super().__init__({code: words.among(known, code) for code, known in spoken.items()})
        self[None], self._kinds = words, kinds

    def __missing__(self, kind: Kind) -> CausalWords:
        known = self._kinds.words_of(kind) if self._kinds is not None else None
        self[kind] = self[None] if known is None else self[None].among(known)
        return self[kind]
