"""Surrogates of one line: its slots with class and original, runs of slots that are one thing, and their words."""

import hmac
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError
from tasks.filling.fill_words import is_strong
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_sentence import (
    Casing,
    MaskedSentence,
    all_capitals,
    same_word,
    spans_of_slots,
    starts_sentence,
)
from tasks.filling.surrogates.figures import (
    YEARS,
    figure,
    figure_by_class,
    is_card,
    is_domain,
    is_figure,
    like,
    like_each,
    other_characters,
    other_figures,
)
from tasks.filling.surrogates.groups import TITLES
from tasks.filling.surrogates.values import gender_of_text, is_one_word
from tasks.filling.surrogates.words_by_frequency import ending_of

if TYPE_CHECKING:
    from tasks.filling.surrogates.filler import SurrogateFiller


@dataclass(frozen=True, slots=True)
class MarkedSlot:
    """A slot with its class and its original."""

    index: int
    label: str
    place: Place
    original: str | None
    """The masked word, or one of them at a merged marker; folded if its spelling must not influence the draw."""
    written: str | None
    """The masked word in its spelling."""


def marked_slots(sentence: MaskedSentence, *, folded: bool = False) -> list[MarkedSlot]:
    """The slots of a sentence, in order. The class is the marker's, else the sidecar's. ``folded``: fold originals."""
    marked = []
    for index, (slot, spans) in enumerate(zip(sentence.slots, spans_of_slots(sentence), strict=True)):
        label = slot.label if slot.label != MASK or not spans else spans[0].label
        written = (spans[-1] if label == "PERSON" else spans[0]).original if spans else None
        original = fold(written) if folded and written is not None else written
        place = Place(sentence.number, slot.first_marker)
        marked.append(MarkedSlot(index, label, place, original, written))
    return marked


def runs_of(sentence: MaskedSentence, marked: Sequence[MarkedSlot]) -> list[list[MarkedSlot]]:
    """Runs of slots of one class. Between them is only white space, a comma between parts of a date, or the full stop
    of an initial."""
    runs: list[list[MarkedSlot]] = []
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


_SHOUTED = 5
"""Minimum length of a shouted word of capitals, in a line with small letters. A shorter one is a short name."""
_SIGNS = re.compile(r"[@#/.&_]")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+|[^\W\d_]+(?:&[^\W\d_]+)+")
_ATTEMPTS, _LAST_ATTEMPTS = 60, 8
_AS_THEY_ARE = ("CONTACT", "IDENTIFIER")
"""Classes whose words do not follow the case of the line."""
_NAMES = ("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS")
_TITLES = frozenset(map(fold, TITLES))
_CASING = Casing({}, filler_is_cased=True)


class SurrogateLine:
    """State of one sentence during filling: the surrogates of its originals."""

    def __init__(self, sources: "SurrogateFiller", sentence: MaskedSentence) -> None:
        self._sources, self._sentence = sources, sentence
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._female = gender_of_text(sentence.texts)
        # A surrogate that is consistent beyond the line depends on the original alone, not on this line.
        self.beyond_line = sources.in_corpus or sentence.document is not None
        """Whether the same original gets the same surrogate in other lines too; originals must then be folded."""

    def fill(self, run: Sequence[MarkedSlot]) -> list[str]:
        """Words for consecutive slots that are one thing, or may be."""
        label = run[0].label
        if label in ("LOCATION", "ORGANISATION", "WORK", "MISCELLANEOUS"):
            return self._draw(run, run, lambda random_numbers: self._thing(label, run, random_numbers))
        groups = " ".join(slot.original or "x" for slot in run)
        if len(run) > 1 and groups.replace(" ", "").isdecimal() and is_card(groups):
            # A card number in groups is one number. Separate draws would repeat groups and fail the Luhn check.
            return self._draw(
                run, run, lambda random_numbers: other_characters(groups, random_numbers, letters=False).split(" ")
            )
        return [
            word
            for index, slot in enumerate(run)
            for word in self._draw([slot], run, lambda r, slot=slot, index=index: [self._one(slot, index, run, r)])  # type: ignore[misc]
        ]

    def _draw(
        self, slots: Sequence[MarkedSlot], run: Sequence[MarkedSlot], make: Callable[[random.Random], list[str]]
    ) -> list[str]:
        """Words for the slots: the earlier surrogates of the same originals, or new ones."""
        sources, label = self._sources, slots[0].label
        originals = tuple(fold(slot.original) for slot in slots if slot.original is not None)
        whole = len(originals) == len(slots)
        kind = "frequency" if label == MASK else "original" if whole else "class"
        sources.counts[{"original": "surrogates_with_original"}.get(kind, f"surrogates_by_{kind}")] += len(slots)
        known = self._known.get((label, *originals)) if whole else None
        if known is not None:
            sources.counts["surrogates_repeated"] += len(slots)
            # Beyond the line it is drawn again by the original: the earlier surrogate may be from a merged marker.
            if not self.beyond_line:
                return self._cased_as([*known], slots, run)
        random_numbers = self._random(slots, originals if whole else ())
        words = make(random_numbers)
        on_list: list[str] | None = None
        for _ in range(_ATTEMPTS):
            if self._fits(words, slots):
                if not any(map(sources.allowed_words.holds, words)):
                    break
                on_list = on_list or words
            words = make(random_numbers)
        else:
            words = on_list or [
                self._last_resort(word, slot, random_numbers) for word, slot in zip(words, slots, strict=True)
            ]
        if whole:
            self._known.setdefault((label, *originals), tuple(words))
            if not self.beyond_line:
                for original, word in zip(originals, words, strict=True):
                    # A part of a name may occur again alone. Other lines may have the part without the whole name.
                    self._known.setdefault((label, original), (word,))
        self._taken.update(map(fold, words))
        return self._cased_as(words, slots, run)

    @cached_property
    def _years(self) -> int | None:
        """Shift of the dates of the line or its document, in years. ``None`` if each word has its own shift: in a
        corpus, one known date would reveal all others."""
        if self._sources.in_corpus:
            return None
        if self._sentence.document is not None:
            message = f"years\0{self._sentence.document}".encode()
            return int.from_bytes(hmac.digest(self._sources.randomness.key, message, "sha256")) % YEARS
        place = Place(self._sentence.number, 0)
        return int(self._sources.randomness.at(place, stream=1).integers(YEARS))

    def _random(self, slots: Sequence[MarkedSlot], originals: tuple[str, ...]) -> random.Random:
        sources = self._sources
        if self.beyond_line and originals:
            document = self._sentence.document
            scope = () if sources.in_corpus or document is None else ("document", document)
            message = "\0".join((*scope, slots[0].label, *originals)).encode()
            return random.Random(int.from_bytes(hmac.digest(sources.randomness.key, message, "sha256")))
        return random.Random(int(sources.randomness.at(slots[0].place).integers(2**63)))

    def _fits(self, words: Sequence[str], slots: Sequence[MarkedSlot]) -> bool:
        for word, slot in zip(words, slots, strict=True):
            if not _is_allowed(word):
                return False
            # Two persons of a line must not become one. Beyond the line this is unknown.
            if fold(word) in self._taken and slot.label in ("PERSON", "LOCATION") and not self.beyond_line:
                return False
        return True

    def _last_resort(self, word: str, slot: MarkedSlot, random_numbers: random.Random) -> str:
        """Another word in the form of the original, if no drawn word is allowed."""
        if _is_allowed(word):
            return word
        form = slot.original if slot.original and is_one_word(slot.original) else word
        for _ in range(_LAST_ATTEMPTS):
            if is_domain(form):
                # Random letters make two words, not a domain: 163.com is one word, 482.qzp is not.
                word = self._sources.values.contact(random_numbers, form, "")
            else:
                word = other_characters(form, random_numbers, letters=True)
            if _is_allowed(word):
                return word
        # This loop ends: ASCII letters and digits are one word, and the form grows longer than every strong word.
        form = "".join(filter(str.isalnum, form)) or "x"
        while not _is_allowed(word):
            word = other_characters(form, random_numbers, letters=True)
            form += random_numbers.choice("ae") if form.isalpha() else "1"
        return word

    def _cased_as(self, words: list[str], slots: Sequence[MarkedSlot], run: Sequence[MarkedSlot]) -> list[str]:
        """Words in the case of their originals, or of the line. In a name with small and capital words (``Poli sci``),
        surrogates of the small words retain their case."""
        texts = self._sentence.texts
        is_mixed = len({(slot.written or "")[:1].islower() for slot in run if slot.written}) > 1
        cased = []
        for word, slot in zip(words, slots, strict=True):
            changed = slot.label == "IDENTIFIER" or any(map(str.isdigit, slot.written or ""))
            if changed and slot.label != "CONTACT" and slot.written is not None and slot.written != slot.original:
                # Drawn from the folded word, character by character.
                cased.append(like_each(slot.written, word))
            elif slot.label in _AS_THEY_ARE:
                cased.append(word)
            elif slot.written is not None and all_capitals(texts):
                cased.append(same_word(word, word.upper()))
            elif slot.written is not None:
                as_drawn = is_mixed and slot.label in _NAMES and slot.written[:1].islower()
                # ``LA`` does not become ``YOUTUBE``.
                as_drawn |= slot.label == MASK and slot.written.isupper() and 1 < len(slot.written) < _SHOUTED
                cased.append(word if as_drawn else like(slot.written, word))
            else:
                around = ["x"] * len(self._sentence.slots)
                around[slot.index] = word
                cased.append(_CASING.write(texts, around)[slot.index])
        return cased

    def _thing(self, label: str, run: Sequence[MarkedSlot], random_numbers: random.Random) -> list[str]:
        originals = [slot.original for slot in run if slot.original is not None]
        originals = originals if len(originals) == len(run) else []
        values, cased, on_list = self._sources.values, not self.beyond_line, self._sources.allowed_words.holds
        if label == "LOCATION":
            return values.place(random_numbers, originals, len(run), cased=cased, on_list=on_list)
        if label == "ORGANISATION":
            return values.organisation(random_numbers, originals, len(run), cased=cased, on_list=on_list)
        return values.named_thing(random_numbers, label, originals, len(run))

    def _one(self, slot: MarkedSlot, index: int, run: Sequence[MarkedSlot], random_numbers: random.Random) -> str:
        values, before = self._sources.values, self._sentence.texts[run[0].index]
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
        return figure(slot.label, random_numbers, slot.original, self._sources.allowed_words.holds, self._years)

    def _name(self, slot: MarkedSlot, index: int, count: int, random_numbers: random.Random) -> str:
        values, original = self._sources.values, slot.original
        words = words_of(self._sentence.texts[slot.index])
        titled = count == 1 and bool(words) and fold(words[-1]) in _TITLES
        last_in_place = titled or (count > 1 and index == count - 1)
        female = self._female
        if original is None:
            is_last = last_in_place
        else:
            if original.startswith("@"):
                return values.contact(random_numbers, original, "")
            # A letter of a script without case may be a whole name, so it is no initial.
            initials = original.isascii() and max(map(len, original.split("."))) == 1
            if initials or any(map(str.isdigit, original)):
                return other_characters(original, random_numbers, letters=True)
            gender = values.gender_of_name(original)
            female = gender if gender is not None or self.beyond_line else female
            known = values.is_last_name(original)
            # Beyond the line, the same word must get the same surrogate in every place.
            is_last = bool(known)
            if (count > 1 or titled) and not self.beyond_line:
                is_last = last_in_place
        return values.last_name(random_numbers) if is_last else values.first_name(random_numbers, female)

    def _word(self, slot: MarkedSlot, random_numbers: random.Random) -> str:
        """A word for a marker without a class."""
        original = slot.original
        if original is not None and any(map(str.isdigit, original)):
            if is_figure(original):
                return other_figures(original, random_numbers)
            return other_characters(original, random_numbers, letters=True)
        if original is not None and _SIGNS.search(original):
            if _INITIALS.fullmatch(original):
                return other_characters(original, random_numbers, letters=True)
            return self._sources.values.contact(random_numbers, original, "")
        by_frequency = self._sources.by_frequency
        if by_frequency is None:
            raise CorpusError(
                f"line {self._sentence.number}: a marker has no class, so its surrogate is drawn by frequency; give "
                "--word-counts (from 'palimpsest count-words'), or a text masked by classes"
            )
        if original is None:
            return by_frequency.draw(random_numbers, None)
        # The usual spelling decides: ``utah`` is a name in a text of small letters, too.
        shape = by_frequency.usual_shape(fold(original))
        if not self.beyond_line:
            starts = starts_sentence(self._sentence.texts[slot.index], first=slot.index == 0)
            is_name = original[:1].isupper() and not original[1:].isupper()
            shape = "capital" if is_name and (shape is None or not starts) else shape or "small"
        return by_frequency.draw(random_numbers, shape, None if shape == "capital" else ending_of(original))


def _is_allowed(word: str) -> bool:
    """Whether the text is one word, and no strong word."""
    return is_one_word(word) and not is_strong(word)
