"""Words by class, according to one tagger and the pools of surrogates, and by form.

- Names (PERSON, LOCATION, ORGANISATION, GROUP, WORK, MISCELLANEOUS): words that the tagger assigns to the class in all
  carrier sentences, unless the pools have them only in another class. Also words of the pools that the tagger does not
  tag. Only words with a usual capital are names, so ``will`` and ``mark`` are none.
- DATE, NUMBER, MONEY: figures, and the words of ``groups``. No vocabulary has words for CONTACT and IDENTIFIER.
- A form (decision 0057), for a marker without a class: figures, a capital, or small letters and an ending.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.masked_sentence import Form, Kind, MaskedSentence
from tasks.filling.surrogates.groups import GROUPS_OF_CLASS
from tasks.filling.surrogates.marked_slots import kinds_of_slots
from tasks.filling.surrogates.words_by_frequency import form_of
from tasks.made_up.known import words_of_class
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import EntitySpan, Tagger

NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_CARRIERS = (("They talked about ", " again."), ("I think that ", " is good."))
_MOST_ASKED = 10_000
"""Maximum number of words with a capital that the tagger reads: the first, most frequent ones."""
_FEWEST_WORDS = 20
"""A kind with fewer candidate words does not restrict a filler, which would repeat the same few words."""


class ClassWords:
    """Words of classes and forms."""

    def __init__(self, tagger: Tagger, forms: Mapping[str, str]) -> None:
        """``forms``: from folded word to its usual form (``usual_forms``); empty to use each word unchanged."""
        self.tagger, self.forms = tagger, forms
        self._allowed: dict[tuple[tuple[str, ...], str | Form], np.ndarray] = {}
        self._classes = classes_in_force(tagger.entity_types, None, tagger.name)

    def class_at(self, spans: Iterable[EntitySpan], start: int, end: int) -> set[str]:
        """The classes of the entities that overlap a span of a tagged line."""
        found = {self._classes[span.label] for span in spans if span.start < end and span.end > start}
        return {label for label in found if label is not None}

    def with_kinds(self, _: Sequence[str], sentences: Sequence[MaskedSentence]) -> list[MaskedSentence]:
        """The sentences with the class or form of each slot."""
        return [sentence.with_kinds(kinds_of_slots(sentence, self.forms)) for sentence in sentences]

    def weights(self, words: Sequence[str], kind: Kind) -> np.ndarray | None:
        """``(W,)`` booleans: which of ``W`` words may replace a marker of a class or form; ``None`` for no restriction,
        since the kind has too few words."""
        if kind is None or (isinstance(kind, str) and kind not in (*NAMES, *GROUPS_OF_CLASS)):
            return None
        words = tuple(words)
        if (words, kind) not in self._allowed:
            if kind in NAMES:
                found = self._names(words)  # of all classes at once, since the tagger takes seconds
            else:
                found = {kind: _figures_and_groups(words, kind)} if isinstance(kind, str) else self._forms(words)
            none = np.zeros(len(words), dtype=bool)
            self._allowed |= {(words, kind): none} | {(words, each): mask for each, mask in found.items()}
        mask = self._allowed[words, kind]
        return mask if np.count_nonzero(mask) >= _FEWEST_WORDS else None

    def _forms(self, words: Sequence[str]) -> dict[str | Form, np.ndarray]:
        forms = [form_of(word, has_capital=fold(word) in self.forms) for word in words]
        return {form: np.array([each == form for each in forms]) for form in dict.fromkeys(forms)}

    def _names(self, words: Sequence[str]) -> dict[str | Form, np.ndarray]:
        written = [self.forms.get(fold(word), word) if word == word.lower() else word for word in words]
        tagged = self._tagged(written)
        found: dict[str | Form, np.ndarray] = {label: np.zeros(len(words), dtype=bool) for label in NAMES}
        known = {label: set(map(fold, words_of_class(label))) for label in NAMES}
        for index, form in enumerate(written):
            labels = {label for label in NAMES if fold(form) in known[label]} if form != form.lower() else set()
            tag = tagged.get(form)
            for label in labels if tag is None else {tag} & (labels or {tag}) & found.keys():
                found[label][index] = True
        return found

    def _tagged(self, written: Sequence[str]) -> dict[str, str]:
        """From words with a capital to their class, if the tagger gives the same class in every carrier sentence."""
        asked = [form for form in dict.fromkeys(written) if form != form.lower()][:_MOST_ASKED]
        lines = [before + form + after for form in asked for before, after in _CARRIERS]
        answers = (spans for _, spans in self.tagger.tag(lines))
        found: dict[str, str] = {}
        for form in asked:
            votes = [self.class_at(next(answers), len(before), len(before) + len(form)) for before, _ in _CARRIERS]
            common = set.intersection(*votes)
            if len(common) == 1:
                found[form] = common.pop()
        return found


def _figures_and_groups(words: Sequence[str], label: str) -> np.ndarray:
    grouped = {fold(word) for group in GROUPS_OF_CLASS[label] for word in group}
    return np.array([fold(word) in grouped or _is_figure(label, word) for word in words], dtype=bool)


def _is_figure(label: str, form: str) -> bool:
    """Whether a word is all digits and may be a date (a year or day), a number or a sum."""
    if not form.isdecimal():
        return False
    return label != "DATE" or (len(form) == 4 and "1500" <= form <= "2099") or 1 <= int(form) <= 31
