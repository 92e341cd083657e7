"""Which words a filler may write for a class of marker: cheap, once a run, before any sentence is filled.

- Names (PERSON, LOCATION, ORGANISATION, GROUP, WORK, MISCELLANEOUS): words that the tagger finds to be of the class in
  a few carrier sentences, unless the gazetteers that the surrogates come from know them as another class only; and
  words of the gazetteers of which the tagger says nothing. Only words that are usually written with a capital are
  names, so ``will`` and ``mark`` are none.
- DATE, NUMBER, MONEY: figures, and the words that ``surrogate_groups`` puts into groups, besides what the tagger finds.

CONTACT and IDENTIFIER have no words that a vocabulary would hold.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.surrogates.surrogate_groups import GROUPS_OF_CLASS
from tasks.filling.surrogates.surrogate_values import SurrogateValues
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import EntitySpan, Tagger

NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_CARRIERS = (("They talked about ", " again."), ("I think that ", " is good."))
_MOST_ASKED = 10_000
"""The tagger is asked about so many words with a capital, the first ones: word lists begin with the frequent words."""


class ClassWords:
    """Words by class, as one tagger and the gazetteers see them."""

    def __init__(self, tagger: Tagger, values: SurrogateValues, forms: Mapping[str, str]) -> None:
        """``forms``: folded word to its usual form, of ``casing.usual_forms``; empty: each word as it stands."""
        self.tagger, self._values, self._forms = tagger, values, forms
        self._classes = classes_in_force(tagger.entity_types, None, tagger.name)

    def class_at(self, spans: Iterable[EntitySpan], start: int, end: int) -> set[str]:
        """The classes of the entities that touch a stretch of a tagged line."""
        found = {self._classes[span.label] for span in spans if span.start < end and span.end > start}
        return {label for label in found if label is not None}

    def allowed(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """Class to ``(W,)`` booleans: which of ``W`` words may stand for a marker of it."""
        written = [self._forms.get(fold(word), word) if word == word.lower() else word for word in words]
        tagged = self._tagged(written)
        found = {label: np.zeros(len(words), dtype=bool) for label in NAMES}
        known = {label: set(map(fold, self._values.words_of_class(label))) for label in NAMES}
        for index, form in enumerate(written):
            labels = {label for label in NAMES if fold(form) in known[label]} if form != form.lower() else set()
            tag = tagged.get(form)
            for label in labels if tag is None else {tag} & (labels or {tag}) & found.keys():
                found[label][index] = True
        for label, groups in GROUPS_OF_CLASS.items():
            grouped = {fold(word) for group in groups for word in group}
            found[label] = np.array(
                [tagged.get(form) == label or fold(form) in grouped or _is_figure(label, form) for form in written],
                dtype=bool,
            )
        return found

    def _tagged(self, written: Sequence[str]) -> dict[str, str]:
        """Words with a capital that the tagger gives the same class in every carrier, and the class."""
        asked = [form for form in dict.fromkeys(written) if form != form.lower()][:_MOST_ASKED]
        lines = [before + form + behind for form in asked for before, behind in _CARRIERS]
        answers = (spans for _, spans in self.tagger.tag(lines))
        found: dict[str, str] = {}
        for form in asked:
            votes = [self.class_at(next(answers), len(before), len(before) + len(form)) for before, _ in _CARRIERS]
            common = set.intersection(*votes)
            if len(common) == 1:
                found[form] = common.pop()
        return found


def _is_figure(label: str, form: str) -> bool:
    """Whether a word of figures may be a date (a year or day), a number or a sum."""
    if not form.isdecimal():
        return False
    return label != "DATE" or (len(form) == 4 and "1500" <= form <= "2099") or 1 <= int(form) <= 31
