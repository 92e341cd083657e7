"""Fills of the class of their marker: ``[PERSON]`` becomes a name, ``[LOCATION]`` a place, checked by a tagger.

A marker with a class (its own, or the sidecar's label for ``[MASK]``) is filled in four steps:

1. The filler chooses among the words of the class, by its method and scores.
2. The tagger reads the filled sentence. A fill is right if an entity of the marker's class touches it.
3. Slots with a wrong fill are filled again, up to ``attempts`` times, without the words tried before. All other fills
   are fixed. A filler without ``ClassRestriction`` gets words of the class by frequency instead: ``unigram``, and a
   causal LM, which itself searches for candidates of the class.
4. A fill that is still wrong becomes a surrogate of the class.

A marker without a class (from a word list) has the form of the masked word if there is a sidecar. The filler then
chooses among the words of this form, as surrogates do: figures, words with a capital, or small words with the same
ending. The tagger does not check them.

The tagger makes errors: it finds no class in a sentence that shows none. So the report has the share of right fills
after the first choice and at the end, and the numbers of redraws and surrogates.

The words of a class are collected once a run, at its first marker:

- Names (PERSON, LOCATION, ORGANISATION, GROUP, WORK, MISCELLANEOUS): words that the tagger assigns to the class in all
  carrier sentences, unless the surrogates' gazetteers have them only in another class. Also words of the gazetteers
  that the tagger does not tag. Only words with a usual capital are names, so ``will`` and ``mark`` are none.
- DATE, NUMBER, MONEY: figures, and the words of ``groups``.

No vocabulary has words for CONTACT and IDENTIFIER.
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
from tasks.filling.methods.surrogate import SurrogateFiller
from tasks.filling.settings import ClassAware
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
        by_form: dict[Form, list[int]] = {}
        for index, word in enumerate(words):
            by_form.setdefault(form_of(word, has_capital=fold(word) in class_words.forms), []).append(index)
        self._forbidden: dict[str | Form, np.ndarray] = {}
        for form, indices in by_form.items():
            self._forbid(form, np.isin(np.arange(len(words)), indices))
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


class WordsOfClassByFrequency:
    """Words of a class by frequency, without never-masked words: for fillers that cannot be restricted."""

    def __init__(
        self, frequencies: WordFrequencies, off_list: np.ndarray, class_words: ClassWords, randomness: MarkerRandomness
    ) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``."""
        self._frequencies, self._off_list = frequencies, off_list
        self._class_words, self._randomness = class_words, randomness
        self._pools: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}

    def draw(self, label: str, place: Place, attempt: int) -> str | None:
        """The word of an attempt, from 0; ``None`` if the class has too few words."""
        if label not in self._pools:
            self._pools[label] = self._pool(label)
        pool = self._pools[label]
        if pool is None:
            return None
        indices, cumulated = pool
        tickets = self._randomness.at(place).integers(cumulated[-1], size=attempt + 1)
        return self._frequencies.words[int(indices[np.searchsorted(cumulated, tickets[-1], side="right")])]

    def _pool(self, label: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Indices of the words of a class, and their cumulated counts."""
        mask = self._class_words.allowed(self._frequencies.words, label)
        indices = np.flatnonzero(mask & self._off_list) if mask is not None else np.zeros(0, dtype=np.int64)
        return (indices, np.cumsum(self._frequencies.counts[indices])) if indices.size >= FEWEST_WORDS else None


@dataclass
class ClassCheckedFiller:
    """A filler whose fills are checked for the classes of their markers."""

    filler: Filler
    casing: Casing
    class_words: ClassWords
    surrogates: SurrogateFiller
    attempts: int
    restriction: ClassRestriction | None = None
    """Restriction of ``filler``; without it wrong fills are drawn ``by_frequency``."""
    by_frequency: WordsOfClassByFrequency | None = None
    _own: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_COUNTS, 0)), init=False)

    @property
    def counts(self) -> Counter[str]:
        """Counts of the filler, and ``_COUNTS``."""
        return Counter({**getattr(self.filler, "counts", {}), **self._own})

    @property
    def forward_seconds(self) -> float | None:
        """Seconds in the model of the filler."""
        return self.filler.forward_seconds

    @property
    def candidate_count(self) -> int:
        """Number of candidates of the filler."""
        return self.filler.candidate_count

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        labels = [labels_of_slots(sentence) for sentence in sentences]
        if self.restriction is not None:
            self.restriction.begin(
                {
                    Place(sentence.number, slot.first_marker): kind or MASK
                    for sentence in sentences
                    for slot, kind in zip(sentence.slots, kinds_of_slots(sentence, self.class_words.forms), strict=True)
                }
            )
        fills = self.filler.fill(sentences, advance)
        classed = [row for row, its_labels in enumerate(labels) if any(label != MASK for label in its_labels)]
        total = sum(label != MASK for its_labels in labels for label in its_labels)
        wrong = self._wrong(sentences, labels, fills, classed)
        self._own["class_slots"] += total
        self._own["class_matches_first"] += total - sum(map(len, wrong.values()))
        for attempt in range(self.attempts):
            if not wrong:
                break
            self._own["class_redraws"] += sum(map(len, wrong.values()))
            self._redraw(sentences, labels, fills, wrong, attempt)
            wrong = self._wrong(sentences, labels, fills, list(wrong))
        self._own["class_surrogates"] += sum(map(len, wrong.values()))
        for row, slots in wrong.items():
            surrogates = self.surrogates.fills(sentences[row], slots)
            fills[row] = [surrogates[i] if i in slots else fill for i, fill in enumerate(fills[row])]
        wrong = self._wrong(sentences, labels, fills, list(wrong))
        self._own["class_matches"] += total - sum(map(len, wrong.values()))
        return fills

    def _wrong(
        self,
        sentences: Sequence[MaskedSentence],
        labels: Sequence[Sequence[str]],
        fills: Sequence[Sequence[Fill]],
        rows: Sequence[int],
    ) -> dict[int, set[int]]:
        """From row to the slots whose fill is not of their class, for the sentences of these rows."""
        lines: list[str] = []
        places: list[list[tuple[int, int]]] = []
        for row in rows:
            words = self.casing.write(sentences[row].texts, [fill.word for fill in fills[row]])
            lines.append(sentences[row].filled(words))
            places.append(_stretches(sentences[row], words))
        wrong: dict[int, set[int]] = {}
        for row, (_, spans), stretches in zip(rows, self.class_words.tagger.tag(lines), places, strict=True):
            slots = {
                slot
                for slot, (label, stretch) in enumerate(zip(labels[row], stretches, strict=True))
                if label != MASK and label not in self.class_words.class_at(spans, *stretch)
            }
            if slots:
                wrong[row] = slots
        return wrong

    def _redraw(
        self,
        sentences: Sequence[MaskedSentence],
        labels: Sequence[Sequence[str]],
        fills: list[list[Fill]],
        wrong: Mapping[int, set[int]],
        attempt: int,
    ) -> None:
        """Fill the wrong slots again; changes ``fills``."""
        for row, slots in wrong.items():
            for index, slot in enumerate(sentences[row].slots):
                place, fill = Place(sentences[row].number, slot.first_marker), fills[row][index]
                if self.restriction is not None:
                    (self.restriction.refuse if index in slots else self.restriction.hold)(place, fill.word)
                elif index in slots and self.by_frequency is not None:
                    word = self.by_frequency.draw(labels[row][index], place, attempt)
                    if word is not None:
                        fills[row][index] = Fill(word)
        if self.restriction is not None:
            again = self.filler.fill([sentences[row] for row in wrong], lambda _: None)
            for row, new in zip(wrong, again, strict=True):
                fills[row] = [new[i] if i in wrong[row] else fill for i, fill in enumerate(fills[row])]


def _stretches(sentence: MaskedSentence, words: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each fill in the filled line."""
    stretches = []
    position = 0
    for text, word in zip(sentence.texts, words, strict=False):
        position += len(text)
        stretches.append((position, position + len(word)))
        position += len(word)
    return stretches


def checked(prepared: "PreparedFill", filler: Filler, casing: Casing) -> ClassCheckedFiller:
    """The filler with its fills checked; ``casing`` writes them in the case of the filled text."""
    method, words = prepared.method, prepared.words
    assert isinstance(method, ClassAware), "the method says that it knows classes"
    class_words = words.opened.class_words(method.class_check, words.counts)
    randomness = MarkerRandomness(prepared.seed, prepared.secret)
    restriction: ClassRestriction | None = getattr(filler, "restriction", None)
    by_frequency = None
    if restriction is None and words.counts is not None:
        off_list = words.allowed_words.off_list(words.counts.words)
        by_frequency = WordsOfClassByFrequency(words.counts, off_list, class_words, randomness)
    return ClassCheckedFiller(
        filler,
        casing,
        class_words,
        SurrogateFiller(randomness, words.counts, words.allowed_words, values=class_words.values),
        method.class_check.attempts,
        restriction,
        by_frequency,
    )
