"""Surrogates without a model: one filler for all lines, and the state of one line with its surrogates."""

import hmac
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Literal

from tasks.corpora.masked_text import CLASSES, MASK
from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_strong
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence, all_capitals, same_word, starts_sentence
from tasks.filling.surrogates.characters import (
    is_card,
    is_domain,
    is_figure,
    like,
    like_each,
    other_characters,
    other_figures,
)
from tasks.filling.surrogates.figures import YEARS, figure, figure_by_class
from tasks.filling.surrogates.marked_slots import MarkedSlot, marked_slots, runs_of
from tasks.filling.surrogates.values import Wanted, contact, first_name, last_name, name, people_of
from tasks.filling.surrogates.words_by_frequency import WordsByFrequency, ending_of
from tasks.made_up.known import gender_of_name, gender_of_text, is_last_name, is_one_word, words_of_class
from tasks.made_up.pools import shipped_words

_SHOUTED = 5
"""Minimum length of a shouted word of capitals, in a line with small letters. A shorter one is a short name."""
_SIGNS = re.compile(r"[@#/.&_]")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+|[^\W\d_]+(?:&[^\W\d_]+)+")
_ATTEMPTS, _LAST_ATTEMPTS = 60, 8
_WHOLE_NAMES = ("LOCATION", "ORGANISATION", "WORK", "MISCELLANEOUS")
"""Classes whose runs are one name."""
_CASING = Casing({}, filler_is_cased=True)


class AsWritten(Casing):
    """A casing that does not change fills: surrogates get their case in the draw."""

    def __init__(self) -> None:
        super().__init__({}, filler_is_cased=True)

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The unchanged words."""
        return list(words)


class SurrogateFiller:
    """Filler that writes surrogates."""

    forward_seconds: float | None = None
    """``None``: there is no model."""

    def __init__(
        self,
        randomness: MarkerRandomness,
        frequencies: WordFrequencies | None = None,
        allowed_words: AllowedWords | None = None,
        *,
        consistent_within: Literal["line", "document", "corpus"] = "line",
    ) -> None:
        """``frequencies``: words for markers without a class. ``allowed_words``: words that surrogates should avoid,
        since the original is none of them. The key of ``randomness`` is for surrogates that are consistent beyond a
        line."""
        self.randomness, self.allowed_words = randomness, allowed_words or AllowedWords()
        self.in_corpus = consistent_within == "corpus"
        """Whether the same original gets the same surrogate in the whole corpus."""
        self.by_frequency: WordsByFrequency | None = None
        """Source for markers without a class."""
        if frequencies is not None:
            self.by_frequency = WordsByFrequency(frequencies, self.allowed_words.off_list(frequencies.words))
        self.counts: Counter[str] = Counter()
        """``surrogates_with_original``, ``surrogates_by_class`` (no sidecar) and ``surrogates_by_frequency`` (no
        class). The first includes ``surrogates_repeated``: the original already occurred in the line."""

    @cached_property
    def candidate_count(self) -> int:
        """Number of different words in the pools."""
        return len({word for label in CLASSES for word in map(fold, words_of_class(label))})

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. Raises ``CorpusError`` with the line for a marker without a class
        if there are no word counts."""
        filled = []
        for sentence in sentences:
            filled.append([fill for _, fill in sorted(self.fills(sentence).items())])
            advance(len(sentence.slots))
        return filled

    def fills(self, sentence: MaskedSentence, slots: Collection[int] | None = None) -> dict[int, Fill]:
        """From slot index to surrogate in its case, for one sentence; at least for ``slots``, or for all. A surrogate
        on the list of never-masked words is a fallback."""
        line = SurrogateLine(self, sentence)
        words: dict[int, str] = {}
        for run in runs_of(sentence, marked_slots(sentence, folded=line.beyond_line)):
            if slots is None or any(slot.index in slots for slot in run):
                words.update(zip((slot.index for slot in run), line.fill(run), strict=True))
        return {index: Fill(word, fallback=self.allowed_words.holds(word)) for index, word in words.items()}


class SurrogateLine:
    """State of one sentence during filling: the surrogates of its originals."""

    def __init__(self, sources: SurrogateFiller, sentence: MaskedSentence) -> None:
        self._sources, self._sentence = sources, sentence
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._female = gender_of_text(sentence.texts)
        # A surrogate that is consistent beyond the line depends on the original alone, not on this line.
        self.beyond_line = sources.in_corpus or sentence.document is not None
        """Whether the same original gets the same surrogate in other lines too; originals must then be folded."""

    def fill(self, run: Sequence[MarkedSlot]) -> list[str]:
        """Words for consecutive slots that are one thing, or may be."""
        if run[0].label in _WHOLE_NAMES:
            return self._draw(run, run, partial(self._name_of_run, run))
        groups = " ".join(slot.original or "x" for slot in run)
        if len(run) > 1 and groups.replace(" ", "").isdecimal() and is_card(groups):
            # A card number in groups is one number. Separate draws would repeat groups and fail the Luhn check.
            return self._draw(run, run, lambda dice: other_characters(groups, dice, letters=False).split(" "))
        words = (self._draw([slot], run, partial(self._word, run, index)) for index, slot in enumerate(run))
        return list(chain.from_iterable(words))

    def _draw(
        self, slots: Sequence[MarkedSlot], run: Sequence[MarkedSlot], make: Callable[[random.Random], list[str]]
    ) -> list[str]:
        """Words for the slots: the earlier surrogates of the same originals, or new ones."""
        sources, label = self._sources, slots[0].label
        originals = tuple(fold(slot.original) for slot in slots if slot.original is not None)
        whole = len(originals) == len(slots)
        kind = "by_frequency" if label == MASK else "with_original" if whole else "by_class"
        sources.counts[f"surrogates_{kind}"] += len(slots)
        known = self._known.get((label, *originals)) if whole else None
        if known is not None:
            sources.counts["surrogates_repeated"] += len(slots)
            # Beyond the line it is drawn again by the original: the earlier surrogate may be from a merged marker.
            if not self.beyond_line:
                return self._cased_as(known, slots, run)
        words = self._new_words(slots, originals if whole else (), make)
        if whole:
            self._known.setdefault((label, *originals), tuple(words))
            if not self.beyond_line:
                for original, word in zip(originals, words, strict=True):
                    # A part of a name may occur again alone. Other lines may have the part without the whole name.
                    self._known.setdefault((label, original), (word,))
        self._taken.update(map(fold, words))
        return self._cased_as(words, slots, run)

    def _new_words(
        self, slots: Sequence[MarkedSlot], originals: tuple[str, ...], make: Callable[[random.Random], list[str]]
    ) -> list[str]:
        """Words that fit, preferably none on the list of never-masked words."""
        random_numbers = self._random(slots, originals)
        on_list: list[str] | None = None
        for _ in range(_ATTEMPTS):
            words = make(random_numbers)
            if self._fits(words, slots):
                if not any(map(self._sources.allowed_words.holds, words)):
                    return words
                on_list = on_list or words
        pairs = zip(words, slots, strict=True)
        return on_list or [self._last_resort(word, slot, random_numbers) for word, slot in pairs]

    @cached_property
    def _years(self) -> int | None:
        """Shift of the dates of the line or its document, in years. ``None`` if each word has its own shift: in a
        corpus, one known date would reveal all others."""
        if self._sources.in_corpus:
            return None
        if self._sentence.document is not None:
            return self._keyed("years", self._sentence.document) % YEARS
        place = Place(self._sentence.number, 0)
        return int(self._sources.randomness.at(place, stream=1).integers(YEARS))

    def _keyed(self, *parts: str) -> int:
        """A number by HMAC (SHA-256) of the parts with the secret key."""
        return int.from_bytes(hmac.digest(self._sources.randomness.key, "\0".join(parts).encode(), "sha256"))

    def _random(self, slots: Sequence[MarkedSlot], originals: tuple[str, ...]) -> random.Random:
        if self.beyond_line and originals:
            document = self._sentence.document
            scope = () if self._sources.in_corpus or document is None else ("document", document)
            return random.Random(self._keyed(*scope, slots[0].label, *originals))
        return random.Random(int(self._sources.randomness.at(slots[0].place).integers(2**63)))

    def _fits(self, words: Sequence[str], slots: Sequence[MarkedSlot]) -> bool:
        # Two persons of a line must not become one. Beyond the line this is unknown.
        taken = set() if self.beyond_line or slots[0].label not in ("PERSON", "LOCATION") else self._taken
        return all(_is_allowed(word) and fold(word) not in taken for word in words)

    def _last_resort(self, word: str, slot: MarkedSlot, random_numbers: random.Random) -> str:
        """Another word in the form of the original, if no drawn word is allowed."""
        form = slot.original if slot.original and is_one_word(slot.original) else word
        for _ in range(_LAST_ATTEMPTS):
            if _is_allowed(word):
                return word
            # Random letters make two words, not a domain: 163.com is one word, 482.qzp is not.
            if is_domain(form):
                word = contact(random_numbers, form)
            else:
                word = other_characters(form, random_numbers, letters=True)
        # This loop ends: ASCII letters and digits are one word, and the form grows longer than every strong word.
        form = "".join(filter(str.isalnum, form)) or "x"
        while not _is_allowed(word):
            word = other_characters(form, random_numbers, letters=True)
            form += "a" if form.isalpha() else "1"
        return word

    def _cased_as(self, words: Sequence[str], slots: Sequence[MarkedSlot], run: Sequence[MarkedSlot]) -> list[str]:
        """Words in the case of their originals, or of the line. In a name with small and capital words (``Poli sci``),
        surrogates of the small words retain their case."""
        is_mixed = len({slot.written[:1].islower() for slot in run if slot.written}) > 1
        return [self._cased(word, slot, is_mixed) for word, slot in zip(words, slots, strict=True)]

    def _cased(self, word: str, slot: MarkedSlot, is_mixed: bool) -> str:
        texts, written = self._sentence.texts, slot.written
        by_character = slot.label == "IDENTIFIER" or any(map(str.isdigit, written or ""))
        if by_character and slot.label != "CONTACT" and written is not None and written != slot.original:
            # Drawn from the folded word, character by character.
            return like_each(written, word)
        if slot.label in ("CONTACT", "IDENTIFIER"):
            return word
        if written is None:
            around = ["x"] * len(self._sentence.slots)
            around[slot.index] = word
            return _CASING.write(texts, around)[slot.index]
        if all_capitals(texts):
            return same_word(word, word.upper())
        as_drawn = is_mixed and slot.label in (*_WHOLE_NAMES, "PERSON", "GROUP") and written[:1].islower()
        # ``LA`` does not become ``YOUTUBE``.
        as_drawn |= slot.label == MASK and written.isupper() and 1 < len(written) < _SHOUTED
        return word if as_drawn else like(written, word)

    def _name_of_run(self, run: Sequence[MarkedSlot], random_numbers: random.Random) -> list[str]:
        originals = [slot.original for slot in run if slot.original is not None]
        originals = originals if len(originals) == len(run) else []
        on_list = self._sources.allowed_words.holds
        return name(run[0].label, Wanted(random_numbers, originals, len(run), not self.beyond_line, on_list))

    def _word(self, run: Sequence[MarkedSlot], index: int, random_numbers: random.Random) -> list[str]:
        """The word of one slot of a run."""
        slot, original = run[index], run[index].original
        match slot.label:
            case "PERSON":
                return [self._person(slot, index, len(run), random_numbers)]
            case "GROUP":
                return [people_of(random_numbers, original)]
            case "CONTACT":
                return [contact(random_numbers, original, self._sentence.texts[run[0].index])]
            case "MASK":
                return [self._word_without_class(slot, random_numbers)]
        if original is None:
            return [figure_by_class(slot.label, random_numbers, index, len(run))]
        return [figure(slot.label, random_numbers, original, self._sources.allowed_words.holds, self._years)]

    def _person(self, slot: MarkedSlot, index: int, count: int, random_numbers: random.Random) -> str:
        """A first or last name, a handle or an initial."""
        original, female = slot.original, self._female
        words = words_of(self._sentence.texts[slot.index])
        titled = count == 1 and bool(words) and fold(words[-1]) in map(fold, shipped_words()["word_before_name"])
        is_last = titled or (count > 1 and index == count - 1)
        if original is not None:
            if original.startswith("@"):
                return contact(random_numbers, original)
            # A letter of a script without case may be a whole name, so it is no initial.
            initials = original.isascii() and max(map(len, original.split("."))) == 1
            if initials or any(map(str.isdigit, original)):
                return other_characters(original, random_numbers, letters=True)
            gender = gender_of_name(original)
            female = gender if gender is not None or self.beyond_line else female
            # Beyond the line, the same word must get the same surrogate in every place.
            if self.beyond_line or (count == 1 and not titled):
                is_last = is_last_name(original)
        return last_name(random_numbers) if is_last else first_name(random_numbers, female)

    def _word_without_class(self, slot: MarkedSlot, random_numbers: random.Random) -> str:
        original, by_frequency = slot.original, self._sources.by_frequency
        if original is not None and any(map(str.isdigit, original)):
            if is_figure(original):
                return other_figures(original, random_numbers)
            return other_characters(original, random_numbers, letters=True)
        if original is not None and _SIGNS.search(original):
            if _INITIALS.fullmatch(original):
                return other_characters(original, random_numbers, letters=True)
            return contact(random_numbers, original)
        if by_frequency is None:
            raise CorpusError(
                f"line {self._sentence.number}: a marker has no class, so its surrogate is drawn by frequency; give "
                "--word-counts (from 'palimpsest count-words'), or a text masked by classes"
            )
        if original is None:
            return by_frequency.draw(random_numbers)
        # The usual spelling decides: ``utah`` is a name in a text of small letters, too.
        has_capital = by_frequency.has_capital(fold(original))
        if not self.beyond_line and original[:1].isupper() and not original[1:].isupper():
            starts = starts_sentence(self._sentence.texts[slot.index], first=slot.index == 0)
            has_capital = has_capital is None or not starts or has_capital
        return by_frequency.draw(random_numbers, ("capital",) if has_capital else ("small", ending_of(original)))


def _is_allowed(word: str) -> bool:
    """Whether the text is one word, and no strong word."""
    return is_one_word(word) and not is_strong(word)
