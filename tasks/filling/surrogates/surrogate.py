"""Surrogates: fills without any model, as anonymisers write them today (Faker, gazetteers), as a competitor.

A marker's class decides the pool: a name for ``[PERSON]``, a place for ``[LOCATION]``, other figures for figures. Where
the masked text has ``[MASK]``, the sidecar's label is the class; a word that has none there either (list techniques) is
drawn by its frequency, as by ``unigram``. With the sidecar a surrogate follows its original: the same gender by the
first name, else by the pronouns of the line; the same kind of place; the same figures, capitals and initials; and
markers that stand side by side get one name of as many words, first name first. It is never the original itself.
Without the sidecar the class alone decides. Every fill is one word.

The same original gets the same surrogate within a line, within the line's document where that is known, or within the
corpus. For a line nothing but the place decides what is drawn. For a document or the corpus it is drawn by an HMAC
(SHA-256) of the folded original, and of the document's name, keyed by the seed and never stored, so that lines can be
filled in any order: then *who knows the seed can try out which original gives a surrogate* (choose a seed of many
digits and keep it), and who does not still sees which lines speak of the same thing. Two persons of a document may then
get the same name by chance, which cannot happen within a line.
"""

import hmac
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError
from tasks.filling.casing import Casing, starts_sentence
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.settings import Surrogate
from tasks.filling.slot_originals import original_words, spans_of_slots
from tasks.filling.surrogates.surrogate_forms import figure, figure_by_class, like, other_characters
from tasks.filling.surrogates.surrogate_frequencies import WordsByFrequency
from tasks.filling.surrogates.surrogate_values import SurrogateValues, gender_of_text, is_one_word
from tasks.filling.word_frequencies import WordFrequencies

_ATTEMPTS = 60
_NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_AS_THEY_ARE = ("CONTACT", "IDENTIFIER")
"""Classes whose words are not cased as the line is."""
_TITLES = ("mr", "mrs", "ms", "miss", "dr", "prof", "sir", "madam")


class AsWritten(Casing):
    """Leaves fills as they are: surrogates are cased when they are drawn."""

    def __init__(self) -> None:
        super().__init__({}, filler_is_cased=True)

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The words themselves."""
        return list(words)


@dataclass(frozen=True, slots=True)
class _Marked:
    """A slot with what is known of it."""

    index: int
    label: str
    place: Place
    original: str | None
    """The word that it stands for (one of them where markers were merged)."""
    forbidden: frozenset[str]
    """All words that it stands for, folded."""


class SurrogateFiller:
    """Writes surrogates."""

    forward_seconds: float | None = None
    """There is no model."""

    def __init__(
        self,
        randomness: MarkerRandomness,
        seed: int,
        frequencies: WordFrequencies | None = None,
        off_list: np.ndarray | None = None,
        *,
        consistent_within: Literal["line", "document", "corpus"] = "line",
        values: SurrogateValues | None = None,
    ) -> None:
        """``frequencies`` and ``off_list`` (``(W,)`` booleans): words for markers without any class."""
        self._randomness, self._key = randomness, str(seed).encode()
        self._in_corpus = consistent_within == "corpus"
        self._values = values or SurrogateValues()
        self._by_frequency = WordsByFrequency(frequencies, off_list) if frequencies is not None else None
        self._cased = Casing({}, filler_is_cased=True)
        self.counts: Counter[str] = Counter()
        """``surrogates_with_original``, ``surrogates_by_class`` (no sidecar) and ``surrogates_by_frequency`` (no
        class), and among the first ``surrogates_repeated``: the original stood in the line before."""

    @property
    def candidate_count(self) -> int:
        """How many different words the pools hold."""
        return len({word for label in CLASSES for word in map(fold, self._values.words_of_class(label))})

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. ``CorpusError`` names the line of a marker without a class where
        there are no word counts."""
        filled = []
        for sentence in sentences:
            filled.append([Fill(word) for _, word in sorted(self.words(sentence).items())])
            advance(len(sentence.slots))
        return filled

    def words(self, sentence: MaskedSentence, slots: Collection[int] | None = None) -> dict[int, str]:
        """The surrogates of one sentence by the index of the slot, cased; of these slots at least, or of all."""
        line = _Line(self, sentence)
        words: dict[int, str] = {}
        for run in _runs(sentence, _marked(sentence)):
            if slots is None or any(slot.index in slots for slot in run):
                words.update(zip((slot.index for slot in run), line.fill(run), strict=True))
        return words


def surrogate_filler(
    settings: Surrogate, seed: int, kept: KeptWords, frequencies: WordFrequencies | None
) -> tuple[SurrogateFiller, AsWritten]:
    """The filler of a ``filling`` section of this kind, and its casing."""
    off_list = kept.off_list(frequencies.words) if frequencies else None
    randomness = MarkerRandomness(seed)
    filler = SurrogateFiller(randomness, seed, frequencies, off_list, consistent_within=settings.consistent_within)
    return filler, AsWritten()


class _Line:
    """One sentence while it is filled: what stands for what in it."""

    def __init__(self, filler: SurrogateFiller, sentence: MaskedSentence) -> None:
        self._filler, self._sentence = filler, sentence
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._female = gender_of_text(sentence.texts)
        # What is the same beyond the line is drawn by the original alone, and by nothing that only this line knows.
        self._beyond_line = filler._in_corpus or sentence.document is not None

    def fill(self, run: Sequence[_Marked]) -> list[str]:
        """Words for slots that stand side by side and are one thing, or may be."""
        label = run[0].label
        if label in ("LOCATION", "ORGANISATION", "WORK", "MISCELLANEOUS"):
            return self._draw(run, run, lambda random_numbers: self._thing(label, run, random_numbers))
        return [
            word
            for index, slot in enumerate(run)
            for word in self._draw([slot], run, lambda r, slot=slot, index=index: [self._one(slot, index, run, r)])  # type: ignore[misc]
        ]

    def _draw(
        self, slots: Sequence[_Marked], run: Sequence[_Marked], make: Callable[[random.Random], list[str]]
    ) -> list[str]:
        """Words for the slots: those that the same originals have already, or new ones."""
        filler, label = self._filler, slots[0].label
        originals = tuple(fold(slot.original) for slot in slots if slot.original is not None)
        whole = len(originals) == len(slots)
        kind = "frequency" if label == MASK else "original" if whole else "class"
        filler.counts[{"original": "surrogates_with_original"}.get(kind, f"surrogates_by_{kind}")] += len(slots)
        if whole and (label, *originals) in self._known:
            filler.counts["surrogates_repeated"] += len(slots)
            return self._cased_as([*self._known[label, *originals]], slots)
        random_numbers = self._random(slots, originals if whole else ())
        words = make(random_numbers)
        for _ in range(_ATTEMPTS):
            if self._fits(words, slots):
                break
            words = make(random_numbers)
        else:
            words = [self._last_resort(word, slot, random_numbers) for word, slot in zip(words, slots, strict=True)]
        if whole:
            self._known[label, *originals] = tuple(words)
            if not self._beyond_line:
                for original, word in zip(originals, words, strict=True):
                    # Part of a name may come again alone. Elsewhere it may stand in a line without the whole name.
                    self._known.setdefault((label, original), (word,))
        self._taken.update(map(fold, words))
        return self._cased_as(words, slots)

    def _random(self, slots: Sequence[_Marked], originals: tuple[str, ...]) -> random.Random:
        filler = self._filler
        if self._beyond_line and originals:
            document = self._sentence.document
            scope = () if filler._in_corpus or document is None else ("document", document)
            message = "\0".join((*scope, slots[0].label, *originals)).encode()
            return random.Random(int.from_bytes(hmac.digest(filler._key, message, "sha256")))
        return random.Random(int(filler._randomness.at(slots[0].place).integers(2**63)))

    def _fits(self, words: Sequence[str], slots: Sequence[_Marked]) -> bool:
        for word, slot in zip(words, slots, strict=True):
            folded = fold(word)
            if folded in slot.forbidden or not is_one_word(word):
                return False
            # Two persons of a line must not become one; beyond it that cannot be known.
            if folded in self._taken and slot.label in ("PERSON", "LOCATION") and not self._beyond_line:
                return False
        return True

    def _last_resort(self, word: str, slot: _Marked, random_numbers: random.Random) -> str:
        """Other letters and figures of the same form, where nothing drawn could be taken."""
        form = slot.original if slot.original and is_one_word(slot.original) else word
        while fold(word) in slot.forbidden or not is_one_word(word):
            word = other_characters(form, random_numbers, letters=True)
            form += random_numbers.choice("ae") if form.isalpha() else "1"
        return word

    def _cased_as(self, words: list[str], slots: Sequence[_Marked]) -> list[str]:
        """Words in the case of their originals, or of the line."""
        texts = self._sentence.texts
        cased = []
        for word, slot in zip(words, slots, strict=True):
            if slot.label in _AS_THEY_ARE:
                cased.append(word)
            elif slot.original is not None:
                cased.append(like(slot.original, word))
            else:
                around = ["x"] * len(self._sentence.slots)
                around[slot.index] = word
                cased.append(self._filler._cased.write(texts, around)[slot.index])
        return cased

    def _thing(self, label: str, run: Sequence[_Marked], random_numbers: random.Random) -> list[str]:
        originals = [slot.original for slot in run if slot.original is not None]
        originals = originals if len(originals) == len(run) else []
        values = self._filler._values
        if label == "LOCATION":
            return values.place(random_numbers, originals, len(run))
        if label == "ORGANISATION":
            return values.organisation(random_numbers, originals, len(run))
        return values.named_thing(random_numbers, label, originals, len(run))

    def _one(self, slot: _Marked, index: int, run: Sequence[_Marked], random_numbers: random.Random) -> str:
        values, before = self._filler._values, self._sentence.texts[run[0].index]
        match slot.label:
            case "PERSON":
                return self._name(slot, index, len(run), random_numbers)
            case "GROUP":
                return values.people_of(random_numbers, slot.original)
            case "CONTACT":
                return values.contact(random_numbers, slot.original, before)
            case "MASK":
                return self._word(slot, random_numbers)
        if slot.original is None:
            return figure_by_class(slot.label, random_numbers, index, len(run))
        return figure(slot.label, random_numbers, slot.original)

    def _name(self, slot: _Marked, index: int, count: int, random_numbers: random.Random) -> str:
        values, original = self._filler._values, slot.original
        words = words_of(self._sentence.texts[slot.index])
        titled = count == 1 and bool(words) and fold(words[-1]) in _TITLES
        last_in_place = titled or (count > 1 and index == count - 1)
        female = self._female
        if original is None:
            is_last = last_in_place
        else:
            if original.startswith("@"):
                return values.contact(random_numbers, original, "")
            if max(map(len, original.split("."))) == 1 or any(map(str.isdigit, original)):
                return other_characters(original, random_numbers, letters=True)
            gender = values.gender_of_name(original)
            female = gender if gender is not None or self._beyond_line else female
            known = values.is_last_name(original)
            # Beyond the line the same word must get the same surrogate wherever it stands.
            is_last = bool(known)
            if (count > 1 or titled) and not self._beyond_line:
                is_last = last_in_place
        return values.last_name(random_numbers) if is_last else values.first_name(random_numbers, female)

    def _word(self, slot: _Marked, random_numbers: random.Random) -> str:
        """A word for a marker without a class."""
        original = slot.original
        if original is not None and any(map(str.isdigit, original)):
            return other_characters(original, random_numbers, letters=not original.isascii() or "@" in original)
        by_frequency = self._filler._by_frequency
        if by_frequency is None:
            raise CorpusError(
                f"line {self._sentence.number}: a marker has no class, so its surrogate is drawn by frequency; give "
                "--word-counts ('palimpsest count-words' makes them), or a text masked by classes"
            )
        shape: Literal["small", "capital"] | None = None
        if original is not None and not starts_sentence(self._sentence.texts, slot.index):
            shape = "small" if original == original.lower() else "capital"
        return by_frequency.draw(random_numbers, shape)


def _marked(sentence: MaskedSentence) -> list[_Marked]:
    marked = []
    for index, (slot, spans) in enumerate(zip(sentence.slots, spans_of_slots(sentence), strict=True)):
        label = slot.label if slot.label != MASK or not spans else spans[0].label
        original = (spans[-1] if label == "PERSON" else spans[0]).original if spans else None
        forbidden = frozenset().union(*map(original_words, spans))
        marked.append(_Marked(index, label, Place(sentence.number, slot.first_marker), original, forbidden))
    return marked


def _runs(sentence: MaskedSentence, marked: Sequence[_Marked]) -> list[list[_Marked]]:
    """Slots of one class with nothing but white space between them, a comma between parts of a date, or the full stop
    of an initial."""
    runs: list[list[_Marked]] = []
    for slot in marked:
        between = sentence.texts[slot.index]
        allowed = " \t," if slot.label == "DATE" else " \t"
        if slot.label == "PERSON" and runs and len(runs[-1][-1].original or "") == 1:
            allowed += "."  # an initial
        near = bool(runs) and slot.label != MASK and runs[-1][-1].label == slot.label
        if near and between and not between.strip(allowed):
            runs[-1].append(slot)
        else:
            runs.append([slot])
    return runs
