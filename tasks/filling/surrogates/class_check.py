"""Fills of the class of their marker: ``[PERSON]`` becomes a name, ``[LOCATION]`` a place, checked by a tagger.

A marker with a class (its own, or the sidecar's label for ``[MASK]``) is filled in four steps:

1. The filler chooses among the words of the class, by its method and scores.
2. The tagger reads the filled sentence. A fill is right if an entity of the marker's class touches it.
3. Slots with a wrong fill are filled again, up to ``_ATTEMPTS`` times, without the words tried before. All other fills
   are fixed. A filler without ``ClassRestriction`` gets words of the class by frequency instead: ``unigram``, and a
   causal LM, which itself searches for candidates of the class.
4. A fill that is still wrong becomes a surrogate of the class.

A marker without a class (from a word list) has the form of the masked word if there is a sidecar: figures, a capital,
or small letters and an ending (decision 0057). The tagger does not check it. The tagger makes errors, so the report has
the share of right fills after the first choice and at the end, and the numbers of redraws and surrogates.

The words of a class are collected once a run, at its first marker:

- Names (PERSON, LOCATION, ORGANISATION, GROUP, WORK, MISCELLANEOUS): words that the tagger assigns to the class in all
  carrier sentences, unless the surrogates' gazetteers have them only in another class. Also words of the gazetteers
  that the tagger does not tag. Only words with a usual capital are names, so ``will`` and ``mark`` are none.
- DATE, NUMBER, MONEY: figures, and the words of ``groups``. No vocabulary has words for CONTACT and IDENTIFIER.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.filled_lines import Filler
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence, spans_of_slots
from tasks.filling.surrogates.filler import SurrogateFiller
from tasks.filling.surrogates.groups import GROUPS_OF_CLASS
from tasks.filling.surrogates.values import SurrogateValues
from tasks.filling.surrogates.words_by_frequency import Form, form_of, forms_of_slots
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import EntitySpan, Tagger

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill

NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_CARRIERS = (("They talked about ", " again."), ("I think that ", " is good."))
_MOST_ASKED = 10_000
"""Maximum number of words with a capital that the tagger reads: the first, most frequent ones."""


class ClassWords:
    """Words by class, according to one tagger and the gazetteers."""

    def __init__(self, tagger: Tagger, values: SurrogateValues, forms: Mapping[str, str]) -> None:
        """``forms``: from folded word to its usual form (``usual_forms``); empty to use each word unchanged."""
        self.tagger, self.values, self.forms = tagger, values, forms
        self._names: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
        self._classes = classes_in_force(tagger.entity_types, None, tagger.name)

    def class_at(self, spans: Iterable[EntitySpan], start: int, end: int) -> set[str]:
        """The classes of the entities that overlap a span of a tagged line."""
        found = {self._classes[span.label] for span in spans if span.start < end and span.end > start}
        return {label for label in found if label is not None}

    def allowed(self, words: Sequence[str], label: str) -> np.ndarray | None:
        """``(W,)`` booleans: which of ``W`` words may replace a marker of a class; ``None`` if the class has none."""
        if label in NAMES:
            key = tuple(words)
            # Cached, since the tagger takes seconds.
            if key not in self._names:
                self._names[key] = self._found(key)
            return self._names[key][label]
        if label not in GROUPS_OF_CLASS:
            return None
        grouped = {fold(word) for group in GROUPS_OF_CLASS[label] for word in group}
        return np.array([fold(word) in grouped or _is_figure(label, word) for word in words], dtype=bool)

    def _found(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        written = [self.forms.get(fold(word), word) if word == word.lower() else word for word in words]
        tagged = self._tagged(written)
        found = {label: np.zeros(len(words), dtype=bool) for label in NAMES}
        known = {label: set(map(fold, self.values.words_of_class(label))) for label in NAMES}
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


def _is_figure(label: str, form: str) -> bool:
    """Whether a word is all digits and may be a date (a year or day), a number or a sum."""
    if not form.isdecimal():
        return False
    return label != "DATE" or (len(form) == 4 and "1500" <= form <= "2099") or 1 <= int(form) <= 31


FEWEST_WORDS = 20
"""A class with fewer candidate words does not restrict the filler, which would repeat the same few words."""
_ATTEMPTS = 3
"""Maximum number of redraws of a fill of another class, before it becomes a surrogate."""
_COUNTS = ("class_slots", "class_matches_first", "class_matches", "class_redraws", "class_surrogates")
"""Slots with a class, right fills after the first choice and at the end, redraws, and surrogates."""


def labels_of_slots(sentence: MaskedSentence) -> list[str]:
    """The class of each slot: its marker's, else the sidecar's if all its words have the same one, else ``MASK``."""
    labels = []
    for slot, spans in zip(sentence.slots, spans_of_slots(sentence), strict=True):
        recorded = {span.label for span in spans}
        labels.append(slot.label if slot.label != MASK or len(recorded) != 1 else recorded.pop())
    return labels


def kinds_of_slots(sentence: MaskedSentence, forms: Mapping[str, str]) -> list[str | Form | None]:
    """The class of each slot, else the form of the masked word, else ``None`` (without a sidecar).

    ``forms``: folded words that are nearly always written with a capital.
    """
    known = zip(labels_of_slots(sentence), forms_of_slots(sentence, forms), strict=True)
    return [form if label == MASK else label for label, form in known]


class ClassRestriction:
    """Restriction of a filler to the words of a class, or of a form, at each place."""

    def __init__(self, words: Sequence[str], class_words: "ClassWords") -> None:
        """``words``: the ``W`` candidates."""
        self._words, self._class_words = words, class_words
        self._index = {word: index for index, word in enumerate(words)}
        forms = [form_of(word, has_capital=fold(word) in class_words.forms) for word in words]
        self._forbidden: dict[str | Form, np.ndarray] = {}
        for form in dict.fromkeys(forms):
            self._forbid(form, np.array([each == form for each in forms]))
        self._classes: set[str] = set()
        self._labels: dict[Place, str | Form] = {}
        self._tried: dict[Place, set[int]] = {}
        self._held: dict[Place, int] = {}

    def _forbid(self, label: str | Form, mask: np.ndarray | None) -> None:
        if mask is not None and np.count_nonzero(mask) >= FEWEST_WORDS:
            self._forbidden[label] = ~mask

    def begin(self, labels: Mapping[Place, str | Form]) -> None:
        """Set the classes or forms of the next sentences, and forget all others."""
        self._labels, self._tried, self._held = dict(labels), {}, {}
        new = {label for label in labels.values() if isinstance(label, str)} - self._classes
        for label in sorted(new):
            self._forbid(label, self._class_words.allowed(self._words, label))
        self._classes |= new

    def hold(self, place: Place, word: str) -> None:
        """Fix this word at a place, if it is a candidate."""
        if word in self._index:
            self._held[place] = self._index[word]

    def refuse(self, place: Place, word: str) -> None:
        """Forbid this word at a place."""
        self._held.pop(place, None)
        if word in self._index:
            self._tried.setdefault(place, set()).add(self._index[word])

    def restrict(self, place: Place, scores: np.ndarray) -> int | None:
        """The fixed candidate of a place, or ``None`` to choose one. For a choice, the ``(W,)`` scores of words already
        tried, or of another class or form, become minus infinity, unless no word would be left."""
        if place in self._held:
            return self._held[place]
        none = np.isneginf(scores)
        mask = none | self._forbidden[label] if (label := self._labels.get(place, MASK)) in self._forbidden else none
        mask[list(self._tried.get(place, ()))] = True
        if not mask.all():
            scores[mask] = -np.inf
        return None


@dataclass
class _Checked:
    """A sentence with a class, and its fills."""

    sentence: MaskedSentence
    labels: list[str]
    """Class of each slot."""
    fills: list[Fill]
    wrong: set[int] = field(default_factory=set)
    """Slots whose fill is not of their class."""


class ClassCheckedFiller:
    """A filler whose fills are checked for the classes of their markers."""

    def __init__(
        self,
        filler: Filler,
        casing: Casing,
        class_words: ClassWords,
        surrogates: SurrogateFiller,
        attempts: int,
        restriction: ClassRestriction | None = None,
        by_frequency: "Callable[[str, Place, int], str | None] | None" = None,
    ) -> None:
        """``casing`` writes the fills in the case of the filled text. ``restriction``: of ``filler``; without it, wrong
        fills are drawn ``by_frequency``: from class, place and attempt to a word."""
        self._filler, self._casing, self._class_words, self._surrogates = filler, casing, class_words, surrogates
        self._attempts, self._restriction, self._by_frequency = attempts, restriction, by_frequency
        self._own = Counter(dict.fromkeys(_COUNTS, 0))
        self.candidate_count = filler.candidate_count
        """Number of candidates of the filler."""

    @property
    def counts(self) -> Counter[str]:
        """Counts of the filler, and ``_COUNTS``."""
        return Counter({**getattr(self._filler, "counts", {}), **self._own})

    @property
    def forward_seconds(self) -> float | None:
        """Seconds in the model of the filler."""
        return self._filler.forward_seconds

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        if self._restriction is not None:
            self._restriction.begin(
                {
                    Place(sentence.number, slot.first_marker): kind or MASK
                    for sentence in sentences
                    for slot, kind in zip(
                        sentence.slots, kinds_of_slots(sentence, self._class_words.forms), strict=True
                    )
                }
            )
        fills = self._filler.fill(sentences, advance)
        labels = map(labels_of_slots, sentences)
        classed = [each for each in map(_Checked, sentences, labels, fills) if {*each.labels} - {MASK}]
        slots = sum(label != MASK for each in classed for label in each.labels)
        wrong = self._wrong(classed)
        self._own["class_slots"] += slots
        self._own["class_matches_first"] += slots - _slots(wrong)
        for attempt in range(self._attempts if wrong else 0):
            self._own["class_redraws"] += _slots(wrong)
            self._redraw(wrong, attempt)
            wrong = self._wrong(wrong)
        self._own["class_surrogates"] += _slots(wrong)
        for each in wrong:
            surrogates = self._surrogates.fills(each.sentence, each.wrong)
            for slot in each.wrong:
                each.fills[slot] = surrogates[slot]
        self._own["class_matches"] += slots - _slots(self._wrong(wrong))
        return fills

    def _wrong(self, checked: Sequence[_Checked]) -> list[_Checked]:
        """The sentences with wrong fills; finds their slots."""
        written = [self._casing.write(each.sentence.texts, [fill.word for fill in each.fills]) for each in checked]
        lines = [each.sentence.filled(words) for each, words in zip(checked, written, strict=True)]
        for each, words, (_, spans) in zip(checked, written, self._class_words.tagger.tag(lines), strict=True):
            each.wrong, end = set(), 0
            for slot, (text, word, label) in enumerate(zip(each.sentence.texts, words, each.labels, strict=False)):
                start, end = end + len(text), end + len(text) + len(word)
                if label != MASK and label not in self._class_words.class_at(spans, start, end):
                    each.wrong.add(slot)
        return [each for each in checked if each.wrong]

    def _redraw(self, checked: Sequence[_Checked], attempt: int) -> None:
        """Fill the wrong slots again."""
        for each in checked:
            for index, slot in enumerate(each.sentence.slots):
                place = Place(each.sentence.number, slot.first_marker)
                if self._restriction is not None:
                    change = self._restriction.refuse if index in each.wrong else self._restriction.hold
                    change(place, each.fills[index].word)
                elif index in each.wrong and self._by_frequency is not None:
                    word = self._by_frequency(each.labels[index], place, attempt)
                    each.fills[index] = each.fills[index] if word is None else Fill(word)
        if self._restriction is not None:
            again = self._filler.fill([each.sentence for each in checked], lambda _: None)
            for each, new in zip(checked, again, strict=True):
                for wrong in each.wrong:
                    each.fills[wrong] = new[wrong]


def _slots(checked: Sequence[_Checked]) -> int:
    return sum(len(each.wrong) for each in checked)


def words_by_frequency(
    frequencies: WordFrequencies, off_list: np.ndarray, class_words: ClassWords, randomness: MarkerRandomness
) -> Callable[[str, Place, int], str | None]:
    """Draws words of a class by frequency: a function from class, place and attempt (from 0) to a word, or ``None`` if
    the class has too few words. ``off_list``: ``(W,)`` booleans over the words of ``frequencies``."""
    pools: dict[str, WordFrequencies] = {}

    def draw(label: str, place: Place, attempt: int) -> str | None:
        if label not in pools:
            mask = class_words.allowed(frequencies.words, label)
            pools[label] = frequencies.shared(np.zeros(len(off_list)) if mask is None else mask & off_list)
        pool = pools[label]
        if len(pool.words) < FEWEST_WORDS:
            return None
        cumulated = np.cumsum(pool.counts)
        tickets = randomness.at(place).integers(cumulated[-1], size=attempt + 1)
        return pool.words[int(np.searchsorted(cumulated, tickets[-1], side="right"))]

    return draw


def checked(prepared: "PreparedFill", filler: Filler, casing: Casing) -> ClassCheckedFiller:
    """The filler with its fills checked; ``casing`` writes them in the case of the filled text."""
    words = prepared.words
    class_words = words.opened.class_words(words.counts)
    randomness = MarkerRandomness(prepared.seed, prepared.secret)
    restriction: ClassRestriction | None = getattr(filler, "restriction", None)
    by_frequency = None
    if restriction is None and words.counts is not None:
        off_list = words.allowed_words.off_list(words.counts.words)
        by_frequency = words_by_frequency(words.counts, off_list, class_words, randomness)
    surrogates = SurrogateFiller(randomness, words.counts, words.allowed_words, values=class_words.values)
    return ClassCheckedFiller(filler, casing, class_words, surrogates, _ATTEMPTS, restriction, by_frequency)
