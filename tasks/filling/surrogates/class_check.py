"""Fills of the class of their marker: ``[PERSON]`` becomes a name, ``[LOCATION]`` a place, checked by a tagger.

Where a marker has a class (its own, or the sidecar's label for ``[MASK]``):

1. the filler chooses among the words of that class alone, by its own method and scores;
2. the tagger reads the filled sentence: a fill is right where an entity of the marker's class touches it;
3. slots whose fill is wrong are filled again, at most so many times, the words tried before left out and all other
   fills held as they are; a filler that does not choose by ``ChoiceOfClass`` (a causal LM, which looks for candidates
   of the class by itself, and ``unigram``) has its wrong fills replaced by words of the class, drawn by frequency;
4. what is wrong still becomes a surrogate of the class.

Where it has none (word lists mask without), and the sidecar says what stood there, the filler chooses among the words
of its form, as surrogates do: figures, or words that are written with a capital, or small ones with its ending. The
tagger has no say in these.

The tagger is no judge of truth: in a sentence that shows no class it finds none. So the report has its share of right
fills after the first choice and at the end, and how many were drawn again or became surrogates.

Which words a filler may write for a class of marker: found once a run, where the first marker of the class stands.

- Names (PERSON, LOCATION, ORGANISATION, GROUP, WORK, MISCELLANEOUS): words that the tagger finds to be of the class in
  a few carrier sentences, unless the gazetteers that the surrogates come from know them as another class only; and
  words of the gazetteers of which the tagger says nothing. Only words that are usually written with a capital are
  names, so ``will`` and ``mark`` are none.
- DATE, NUMBER, MONEY: figures, and the words that ``groups`` puts into groups.

CONTACT and IDENTIFIER have no words that a vocabulary would hold.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.choice import Choice, Chosen, Forbidden, spans_of_slots
from tasks.filling.filled_corpus import Filler
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.methods.surrogate import SurrogateFiller
from tasks.filling.settings import ClassAware
from tasks.filling.surrogates.groups import GROUPS_OF_CLASS
from tasks.filling.surrogates.values import SurrogateValues
from tasks.filling.surrogates.words_by_frequency import Form, form_of, forms_of_slots
from tasks.masking.taggers.entity_classes import classes_in_force
from tasks.masking.taggers.tagger import EntitySpan, Tagger

if TYPE_CHECKING:
    from tasks.filling.context import FillContext

NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_CARRIERS = (("They talked about ", " again."), ("I think that ", " is good."))
_MOST_ASKED = 10_000
"""The tagger is asked about so many words with a capital, the first ones: word lists begin with the frequent words."""


class ClassWords:
    """Words by class, as one tagger and the gazetteers see them."""

    def __init__(self, tagger: Tagger, values: SurrogateValues, forms: Mapping[str, str]) -> None:
        """``forms``: folded word to its usual form, of ``usual_forms``; empty: each word as it stands."""
        self.tagger, self.values, self.forms = tagger, values, forms
        self._names: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
        self._classes = classes_in_force(tagger.entity_types, None, tagger.name)

    def class_at(self, spans: Iterable[EntitySpan], start: int, end: int) -> set[str]:
        """The classes of the entities that touch a stretch of a tagged line."""
        found = {self._classes[span.label] for span in spans if span.start < end and span.end > start}
        return {label for label in found if label is not None}

    def allowed(self, words: Sequence[str], label: str) -> np.ndarray | None:
        """``(W,)`` booleans: which of ``W`` words may stand for a marker of a class; ``None`` for one that has none."""
        if label in NAMES:
            key = tuple(words)
            # The tagger takes seconds.
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


FEWEST_WORDS = 20
"""A class with fewer candidate words does not restrict the filler, which would write the same few again and again."""
_COUNTS = ("class_slots", "class_matches_first", "class_matches", "class_redraws", "class_surrogates")
"""Slots with a class; of these so many right after the first choice and at the end; drawn again; and surrogates."""


def labels_of_slots(sentence: MaskedSentence) -> list[str]:
    """The class of each slot: its marker's, else the sidecar's where all its words have the same, else ``MASK``."""
    labels = []
    for slot, spans in zip(sentence.slots, spans_of_slots(sentence), strict=True):
        recorded = {span.label for span in spans}
        labels.append(slot.label if slot.label != MASK or len(recorded) != 1 else recorded.pop())
    return labels


def kinds_of_slots(sentence: MaskedSentence, forms: Mapping[str, str]) -> list[str | Form | None]:
    """The class of each slot; where it has none the form of the word that was masked, if the sidecar tells.

    ``forms``: folded words that are nearly always written with a capital.
    """
    known = zip(labels_of_slots(sentence), forms_of_slots(sentence, forms), strict=True)
    return [form if label == MASK else label for label, form in known]


class ChoiceOfClass:
    """A filling method that sees, at places with a class, the words of that class alone; at others those of a form."""

    def __init__(
        self,
        choice: Choice,
        words: Sequence[str],
        allowed: Callable[[str], np.ndarray | None],
        forms: Mapping[str, str] | None = None,
    ) -> None:
        """``words``: the ``W`` candidates; ``allowed``: class to ``(W,)`` booleans, asked where a marker has it;
        ``forms``: folded words that are nearly always written with a capital."""
        self._choice, self._allowed = choice, allowed
        self._index = {word: index for index, word in enumerate(words)}
        by_form: dict[Form, list[int]] = {}
        for index, word in enumerate(words):
            by_form.setdefault(form_of(word, has_capital=fold(word) in (forms or {})), []).append(index)
        self._forbidden: dict[str | Form, np.ndarray] = {}
        for form, indices in by_form.items():
            self._forbid(form, np.isin(np.arange(len(words)), indices))
        self._classes: set[str] = set()
        self._none = np.zeros(len(words), dtype=bool)
        self._labels: dict[Place, str | Form] = {}
        self._tried: dict[Place, set[int]] = {}
        self._held: dict[Place, int] = {}

    def _forbid(self, label: str | Form, mask: np.ndarray | None) -> None:
        if mask is not None and np.count_nonzero(mask) >= FEWEST_WORDS:
            self._forbidden[label] = ~mask

    def begin(self, labels: Mapping[Place, str | Form]) -> None:
        """Take the classes or forms of the sentences that are filled next, and forget all others."""
        self._labels, self._tried, self._held = dict(labels), {}, {}
        new = {label for label in labels.values() if isinstance(label, str)} - self._classes
        for label in sorted(new):
            self._forbid(label, self._allowed(label))
        self._classes |= new

    def hold(self, place: Place, word: str) -> None:
        """From now on a place gets this word again, if it is a candidate."""
        if word in self._index:
            self._held[place] = self._index[word]

    def refuse(self, place: Place, word: str) -> None:
        """From now on a place does not get this word."""
        self._held.pop(place, None)
        if word in self._index:
            self._tried.setdefault(place, set()).add(self._index[word])

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores; ``forbidden`` is what else must not be chosen."""
        held = [self._held.get(place) for place in places]
        chosen = Chosen(np.array([index or 0 for index in held]), np.zeros(len(places), dtype=bool))
        free = [row for row, index in enumerate(held) if index is None]
        if free:
            masks = [self._mask(places[row], self._none if forbidden is None else forbidden[row]) for row in free]
            drawn = self._choice.choose(scores[free], [places[row] for row in free], masks)
            chosen.candidates[free], chosen.fallbacks[free] = drawn.candidates, drawn.fallbacks
        return chosen

    def _mask(self, place: Place, others: np.ndarray) -> np.ndarray:
        """``(W,)`` booleans: what must not be chosen at a place: ``others``, and where that leaves a word what was
        tried there and what is of another class or form."""
        mask = self._forbidden.get(self._labels.get(place, MASK), self._none).copy()
        mask[list(self._tried.get(place, ()))] = True
        mask[others] = True
        if mask.all():
            mask[:] = False
            mask[others] = True
        return mask


class WordsOfClassByFrequency:
    """Words of a class, off the list of kept words, by their frequency: for fillers that cannot be restricted."""

    def __init__(
        self, frequencies: WordFrequencies, off_list: np.ndarray, class_words: ClassWords, randomness: MarkerRandomness
    ) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``."""
        self._frequencies, self._off_list = frequencies, off_list
        self._class_words, self._randomness = class_words, randomness
        self._pools: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}

    def draw(self, label: str, place: Place, attempt: int) -> str | None:
        """The word of an attempt, from 0; ``None`` where the class has too few words."""
        if label not in self._pools:
            self._pools[label] = self._pool(label)
        pool = self._pools[label]
        if pool is None:
            return None
        indices, cumulated = pool
        tickets = self._randomness.at(place).integers(cumulated[-1], size=attempt + 1)
        return self._frequencies.words[int(indices[np.searchsorted(cumulated, tickets[-1], side="right")])]

    def _pool(self, label: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The words of a class, as indices, and their cumulated counts."""
        mask = self._class_words.allowed(self._frequencies.words, label)
        indices = np.flatnonzero(mask & self._off_list) if mask is not None else np.zeros(0, dtype=np.int64)
        return (indices, np.cumsum(self._frequencies.counts[indices])) if indices.size >= FEWEST_WORDS else None


@dataclass
class ClassCheckedFiller:
    """Another filler, its fills held against the classes of their markers."""

    filler: Filler
    casing: Casing
    class_words: ClassWords
    surrogates: SurrogateFiller
    attempts: int
    choice: ChoiceOfClass | None = None
    """The one that ``filler`` chooses by; without it wrong fills are drawn ``by_frequency``."""
    by_frequency: WordsOfClassByFrequency | None = None
    _own: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_COUNTS, 0)), init=False)

    @property
    def counts(self) -> Counter[str]:
        """The filler's own, and ``_COUNTS``."""
        return Counter({**getattr(self.filler, "counts", {}), **self._own})

    @property
    def forward_seconds(self) -> float | None:
        """Of the filler."""
        return self.filler.forward_seconds

    @property
    def candidate_count(self) -> int:
        """Of the filler."""
        return self.filler.candidate_count

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        labels = [labels_of_slots(sentence) for sentence in sentences]
        if self.choice is not None:
            self.choice.begin(
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
        """Of the sentences of these rows, the slots whose fill is not of their class."""
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
        """Fill the wrong slots again, in place."""
        for row, slots in wrong.items():
            for index, slot in enumerate(sentences[row].slots):
                place, fill = Place(sentences[row].number, slot.first_marker), fills[row][index]
                if self.choice is not None:
                    (self.choice.refuse if index in slots else self.choice.hold)(place, fill.word)
                elif index in slots and self.by_frequency is not None:
                    word = self.by_frequency.draw(labels[row][index], place, attempt)
                    if word is not None:
                        fills[row][index] = Fill(word)
        if self.choice is not None:
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


class ClassChecks:
    """What one filler needs so that its fills have the class of their markers."""

    def __init__(self, context: "FillContext") -> None:
        """Loads the tagger; ``ModelError`` where it cannot be found or used."""
        self._context, self._words = context, context.class_words
        self._choice: ChoiceOfClass | None = None

    def restricted(self, choice: Choice, words: Sequence[str]) -> Choice:
        """The choice that the filler shall use instead; ``words`` are its ``W`` candidates."""
        self._choice = ChoiceOfClass(choice, words, partial(self._words.allowed, words), self._words.forms)
        return self._choice

    def checked(self, filler: Filler, casing: Casing) -> ClassCheckedFiller:
        """The filler with its fills checked; ``casing`` writes them as the filled text will have them."""
        method, frequencies, kept = self._context.method, self._context.word_counts, self._context.kept
        assert isinstance(method, ClassAware), "the method says that it knows classes"
        randomness = MarkerRandomness(self._context.seed, self._context.secret)
        by_frequency = None
        if self._choice is None and frequencies is not None:
            off_list = kept.off_list(frequencies.words)
            by_frequency = WordsOfClassByFrequency(frequencies, off_list, self._words, randomness)
        return ClassCheckedFiller(
            filler,
            casing,
            self._words,
            SurrogateFiller(randomness, frequencies, kept, values=self._words.values),
            method.class_check.attempts,
            self._choice,
            by_frequency,
        )
