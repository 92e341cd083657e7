"""A masked line as a sentence with slots, and the case of its fills.

A sentence has pieces of unmasked text and slots between them, for one word each. Merged markers (paper 3.2) make one
slot: a run of one class with only white space between. Filling copies the text character by character, except the
article before a fill (``agreement``).

Only the unmasked part of a line decides about the case of its fills:

- A line in capitals (two words or more) gets its fills in capitals.
- A line with ``i`` for ``I``, or with small letters at the start of a sentence and no capital, gets them in lower case.
- In any other line, a fill at the start of a sentence begins with a capital, and ``i`` is ``I``. Other words follow the
  word list: the form that it has nearly always (``London``, ``NASA``), or else lower case. A filler that reads its
  sentence decides on capitals itself, unless the word list has the word mostly in lower case.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError

Form = tuple[str, ...]
"""Form that a word without a class shares with its substitute: figures, a capital, or small letters and an ending."""
Kind = str | Form | None
"""Restriction of a fill: a language, the class of a marker, or the form of a masked word; ``None`` for none."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One place for a word."""

    label: str
    """Class of its markers."""
    first_marker: int
    """Index, from 0, of its first marker in the masked line."""
    last_marker: int
    """Index of its last marker; equal to ``first_marker`` unless markers were merged."""
    kind: Kind = None
    """Restriction of its fill."""


@dataclass(frozen=True, slots=True)
class Fill:
    """The word in a slot."""

    word: str
    fallback: bool = False
    """Whether the method's rule found no word, so that another one was taken."""


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A line with ``n`` slots between ``n + 1`` pieces of text, unescaped and possibly empty."""

    number: int
    """Line number, from 1."""
    texts: tuple[str, ...]
    slots: tuple[Slot, ...]
    spans: tuple[MaskedSpan, ...] = ()
    """Masked spans of the sidecar (private), from ``with_spans``; empty if no sidecar is read."""
    document: str | None = None
    """Name of the line's document; ``None`` if it is unknown."""

    def with_kinds(self, kinds: Sequence[Kind]) -> "MaskedSentence":
        """The sentence with the kind of each slot."""
        slots = (replace(slot, kind=kind) for slot, kind in zip(self.slots, kinds, strict=True))
        return replace(self, slots=tuple(slots))

    def filled(self, words: Sequence[str]) -> str:
        """The line with one word in each slot."""
        parts = [self.texts[0]]
        for word, text in zip(words, self.texts[1:], strict=True):
            parts += (word, text)
        return "".join(parts)


def read_masked_line(line: str, number: int, *, merge_markers: bool, document: str | None = None) -> MaskedSentence:
    """Parse a masked line. ``merge_markers`` makes one slot from equal markers with only white space between."""
    texts = [""]
    slots: list[Slot] = []
    last: Marker | None = None
    marker_index = 0
    for piece in parse_masked(line):
        if isinstance(piece, str):
            texts[-1] += piece
            continue
        if merge_markers and last == piece and not texts[-1].strip():
            slots.append(Slot(piece.label, slots.pop().first_marker, marker_index))
            texts[-1] = ""
        else:
            slots.append(Slot(piece.label, marker_index, marker_index))
            texts.append("")
        last = piece
        marker_index += 1
    return MaskedSentence(number, tuple(texts), tuple(slots), document=document)


def with_spans(sentence: MaskedSentence, spans: Sequence[MaskedSpan]) -> MaskedSentence:
    """The sentence with its spans of the sidecar. Raises ``CorpusError`` if they are of another masked text."""
    recorded = {span.marker for span in spans}
    markers = {m for slot in sentence.slots for m in range(slot.first_marker, slot.last_marker + 1)}
    if recorded != markers:
        raise CorpusError(
            f"line {sentence.number}: the sidecar has {len(recorded)} markers and the masked text {len(markers)}; "
            "give the sidecar that was written with this masked text"
        )
    return replace(sentence, spans=tuple(spans))


def spans_of_slots(sentence: MaskedSentence) -> list[list[MaskedSpan]]:
    """The masked spans of each slot, in order; empty lists without a sidecar."""
    by_marker: dict[int, list[MaskedSpan]] = {}
    for span in sentence.spans:
        by_marker.setdefault(span.marker, []).append(span)
    return [
        [span for m in range(slot.first_marker, slot.last_marker + 1) for span in by_marker.get(m, ())]
        for slot in sentence.slots
    ]


def original_words(span: MaskedSpan) -> set[str]:
    """The folded words of a span, or the whole folded span if it has no word."""
    return set(folded_words(span.original) or [fold(span.original)])


def originals_of_slots(sentence: MaskedSentence) -> list[set[str]]:
    """The folded masked words of each slot, of all its markers."""
    return [set().union(*map(original_words, spans)) for spans in spans_of_slots(sentence)]


ARTICLE = re.compile(r"(?:^|(?<=[\s\"“‘'(\[]))(a|A)[nN]? $")
"""A possible indefinite article directly before a fill; the group is its letter."""


def with_article(text: str, article: str) -> str:
    """The text with this article instead of the one at its end; unchanged if there is none."""
    return ARTICLE.sub(article + " ", text)


def fills_of(sentence: MaskedSentence, filled: str, words: Sequence[str] | None = None) -> list[tuple[int, int]] | None:
    """Start and end of each slot's fill in the filled line; ``None`` if the line is no fill of the sentence.

    ``words``: the fills, if they are known. The article before a fill may differ (``filling.agreement``).
    """
    known = [r"(\S+?)"] * len(sentence.slots) if words is None else [f"({re.escape(word)})" for word in words]
    pattern = ""
    for text, word in zip(sentence.texts[:-1], known, strict=True):
        found = ARTICLE.search(text)
        pattern += re.escape(text[: found.start()]) + found[1] + "[nN]? " if found else re.escape(text)
        pattern += word
    match = re.fullmatch(pattern + re.escape(sentence.texts[-1]), filled)
    return [match.span(number) for number in range(1, len(known) + 1)] if match else None


def check_unchanged(line: str, filled: str, sentence: MaskedSentence, words: Sequence[str]) -> None:
    """Check that a filled line equals its masked line except for the words at the markers.

    The masked line is parsed again. The filled line must have every character outside markers, in order, and exactly
    the fills between. Only an article before a marker may change. Raises ``RuntimeError`` (a defect, never a user's
    error) with the line number.
    """
    is_merged = any(slot.first_marker != slot.last_marker for slot in sentence.slots)
    masked = read_masked_line(line, sentence.number, merge_markers=is_merged)
    if len(words) != len(masked.slots) or not all(words) or fills_of(masked, filled, words) is None:
        raise RuntimeError(f"line {sentence.number}: a fill is not where its marker was, or unmasked text has changed")


_SENTENCE_START = re.compile(r"(?:^|[.!?][\"'”’)\]]*\s)[\s\"'“‘(\[]*$")
_LOWER_START = re.compile(r"(?:^|[.!?]\s)[\s\"'“‘(\[]*[a-z]")
_LONE_I = re.compile(r"(?<![\w.'’])i(?![\w.])")
_ELLIPSIS = re.compile(r"\.\.+\s*$|…\s*$")
_MOST_LOWER = 0.1
"""Maximum share of lower case among a word's occurrences in the word list, for a word with capitals."""


class Casing:
    """Writes the fills of a line in the case of the line."""

    def __init__(self, forms: Mapping[str, str], *, filler_is_cased: bool, small: Collection[str] = ()) -> None:
        """``forms``: from folded word to its usual form (``usual_forms``), or empty. ``filler_is_cased``: whether the
        filler decides on capitals by its sentence. ``small``: words that get a capital only at the start of a sentence
        (``small_words``)."""
        self._forms, self._filler_is_cased, self._small = forms, filler_is_cased, small

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The words of a line's slots in their case; ``texts``: the ``n + 1`` texts around the ``n`` slots."""
        if all_capitals(texts):
            return [same_word(word, word.upper()) for word in words]
        if _writes_lower_case(texts):
            return [same_word(word, word.lower()) for word in words]
        cased = []
        for index, word in enumerate(words):
            word = self._usual(word)
            if starts_sentence(texts[index], first=index == 0):
                word = same_word(word, word[0].upper() + word[1:])
            cased.append(word)
        return cased

    def _usual(self, word: str) -> str:
        """The word in its form inside a sentence."""
        folded = fold(word)
        if self._filler_is_cased:
            is_small = word[1:] == word[1:].lower() and folded in self._small
            return same_word(word, word.lower()) if is_small else word
        return same_word(word, self._forms.get(folded, "I" if folded == "i" else word.lower()))


def all_capitals(texts: Sequence[str]) -> bool:
    """Whether a line has two words or more, and all its letters are capitals."""
    line = " ".join(texts)
    if not line.isupper():
        return False
    letters = [character for character in line if character.isalpha()]
    return len(letters) > 3 and all(map(str.isupper, letters)) and len(line.split()) > 1


def same_word(word: str, cased: str) -> str:
    """``cased``, or ``word`` if the two differ when folded: a capital ``ı`` is an ``I``, so ``SINIF`` may come from
    ``sinif`` too. An allowed word must not become a forbidden one, such as the masked word."""
    return cased if word.isascii() or fold(cased) == fold(word) else word


def starts_sentence(before: str, *, first: bool) -> bool:
    """Whether a sentence begins after this text, which precedes a fill; ``first``: whether the text begins the line."""
    if not first and not before.strip():
        return False
    match = _SENTENCE_START.search(before)
    if match is None or _ELLIPSIS.search(before):
        return False
    # A slot after opening signs alone starts a sentence if it starts the line.
    return first or bool(re.search(r"[.!?]", match.group()))


def _writes_lower_case(texts: Sequence[str]) -> bool:
    if any(_LONE_I.search(text) for text in texts):
        return True
    return _LOWER_START.match(texts[0]) is not None and not any(map(str.isupper, "".join(texts)))


def usual_forms(counts: Iterable[tuple[str, int]]) -> dict[str, str]:
    """From folded word to its usual form, for words that are hardly ever in lower case.

    ``counts``: cased words with their counts. The usual form is the most frequent one with a capital.
    """
    total, lower, best = _case_counts(counts)
    return {folded: form for folded, (_, form) in best.items() if lower.get(folded, 0) <= _MOST_LOWER * total[folded]}


def small_words(counts: Iterable[tuple[str, int]]) -> set[str]:
    """The folded words that are mostly in lower case; empty if no word has a capital, since case is then unknown."""
    total, lower, best = _case_counts(counts)
    return {folded for folded, count in lower.items() if 2 * count > total[folded]} if best else set()


def _case_counts(
    counts: Iterable[tuple[str, int]],
) -> tuple[dict[str, int], dict[str, int], dict[str, tuple[int, str]]]:
    """For each folded word: its count, its lower-case count, and the count and form of its most frequent capitals."""
    total: dict[str, int] = {}
    lower: dict[str, int] = {}
    best: dict[str, tuple[int, str]] = {}
    for word, count in counts:
        folded = fold(word)
        total[folded] = total.get(folded, 0) + count
        if word == word.lower():
            lower[folded] = lower.get(folded, 0) + count
        elif count > best.get(folded, (0, ""))[0]:
            best[folded] = (count, word)
    return total, lower, best
