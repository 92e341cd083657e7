"""A masked line as the fillers see it: pieces of unmasked text, and slots between them that want one word each.

A slot stands for one marker, or for a run of markers of one class with nothing but white space between them where these
are merged (paper 3.2): a person and a date are never one word. Text pieces come back into the filled line character by
character, but for the article in front of a fill (``agreement``); ``check_unchanged`` holds every line against its
masked form.

Capital letters of a fill: a filler that knows lower case only must not leave ``london`` in cased text, and one that
draws ``Lord`` from titles must not leave that within a sentence.

What the unmasked part of a line shows decides, nothing else:

- a line whose letters are all capitals (two words or more) gets its fills in capitals;
- a line that writes ``i`` for ``I``, or begins a sentence in lower case and has no capital at all, gets them in lower
  case;
- in any other line a fill at the start of a sentence begins with a capital, ``i`` is ``I``, and another word is
  written as the word list writes it nearly always (``London``, ``NASA``), or else in lower case. What a filler that
  reads its sentence writes with capitals stays so, unless the word list has it in lower case more often than not.

No fill becomes another word by its case (``same_word``).

A fill starts a sentence where nothing stands before it in the line but opening signs, or where a sentence's end
(``. ! ?``) and white space do.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold


@dataclass(frozen=True, slots=True)
class Slot:
    """One place that wants a word."""

    label: str
    """Class of its markers."""
    first_marker: int
    """Index, from 0, of its first marker in the masked line."""
    last_marker: int
    """Index of its last marker: the same, unless markers were merged."""
    language: str | None = None
    """The one that its marker names or its neighbours speak, where fills are to keep it."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands in a slot."""

    word: str
    fallback: bool = False
    """The method's own rule found no word, and another one was taken."""


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A line with ``n`` slots between ``n + 1`` pieces of text, unescaped and possibly empty."""

    number: int
    """Line number, from 1."""
    texts: tuple[str, ...]
    slots: tuple[Slot, ...]
    spans: tuple[MaskedSpan, ...] = ()
    """What its markers stand for (private), from ``choice.with_spans``; empty where no sidecar is read."""
    document: str | None = None
    """Name of the document that the line belongs to; ``None`` where nothing says so."""

    def filled(self, words: Sequence[str]) -> str:
        """The line with one word in each slot."""
        parts = [self.texts[0]]
        for word, text in zip(words, self.texts[1:], strict=True):
            parts += (word, text)
        return "".join(parts)


def read_masked_line(line: str, number: int, *, merge_markers: bool, document: str | None = None) -> MaskedSentence:
    """Parse a masked line; ``merge_markers`` makes one slot of equal markers that only white space separates."""
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


def check_unchanged(line: str, filled: str, sentence: MaskedSentence, words: Sequence[str]) -> None:
    """Make sure that a filled line is its masked line with words for markers and nothing else changed.

    The masked line is read anew: every character outside markers must stand in the filled line, in order, with exactly
    the fills between; only an article in front of a marker may be the other one. Raises ``RuntimeError`` (a defect,
    never a user's error) that names the line by its number.
    """
    position = 0
    fills = iter(words)
    open_markers = 0
    slots = {slot.first_marker: slot for slot in sentence.slots}
    marker_index = 0
    for piece, following in pairwise([*parse_masked(line), ""]):
        if isinstance(piece, Marker):
            slot = slots.get(marker_index)
            if slot is not None:
                word = next(fills, None)
                if not word or not filled.startswith(word, position):
                    raise RuntimeError(f"line {sentence.number}: a fill is not where its marker was")
                position += len(word)
                open_markers = slot.last_marker - slot.first_marker
            elif open_markers:
                open_markers -= 1
            else:
                raise RuntimeError(f"line {sentence.number}: a marker has no fill")
            marker_index += 1
        elif open_markers and not piece.strip():
            continue
        else:
            found = ARTICLE.search(piece) if isinstance(following, Marker) else None
            forms = [with_article(piece, found[1] + ending) for ending in ("", "n", "N")] if found else []
            stands = next((form for form in (piece, *forms) if filled.startswith(form, position)), None)
            if open_markers or stands is None:
                raise RuntimeError(f"line {sentence.number}: unmasked text has changed")
            position += len(stands)
    if position != len(filled) or next(fills, None) is not None or open_markers:
        raise RuntimeError(f"line {sentence.number}: the filled line holds more than text and fills")


ARTICLE = re.compile(r"(?:^|(?<=[\s\"“‘'(\[]))(a|A)[nN]? $")
"""What may be an indefinite article right in front of a fill; its letter is the group."""


def with_article(text: str, article: str) -> str:
    """The text with this article in the place of the one at its end; itself where there is none."""
    return ARTICLE.sub(article + " ", text)


_SENTENCE_START = re.compile(r"(?:^|[.!?][\"'”’)\]]*\s)[\s\"'“‘(\[]*$")
_LOWER_START = re.compile(r"(?:^|[.!?]\s)[\s\"'“‘(\[]*[a-z]")
_LONE_I = re.compile(r"(?<![\w.'’])i(?![\w.])")
_ELLIPSIS = re.compile(r"\.\.+\s*$|…\s*$")
_MOST_LOWER = 0.1
"""A word is written in capitals where at most this share of its occurrences in the word list is in lower case."""


class Casing:
    """Writes the fills of a line as the line writes its words."""

    def __init__(self, forms: Mapping[str, str], *, filler_is_cased: bool, small: Collection[str] = ()) -> None:
        """``forms``: folded word to its usual form, from ``usual_forms``, or empty. ``filler_is_cased``: whether the
        filler knows from its sentence where a word has capitals. ``small``: of ``small_words``, those that it writes
        with a capital at the start of a sentence alone."""
        self._forms, self._filler_is_cased, self._small = forms, filler_is_cased, small

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The words of a line's slots, cased; ``texts`` are the ``n + 1`` texts round the ``n`` slots."""
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
        """The word as it is written within a sentence."""
        folded = fold(word)
        if self._filler_is_cased:
            is_small = word[1:] == word[1:].lower() and folded in self._small
            return same_word(word, word.lower()) if is_small else word
        return same_word(word, self._forms.get(folded, "I" if folded == "i" else word.lower()))


def all_capitals(texts: Sequence[str]) -> bool:
    """Whether all letters of a line are capitals, and of two words or more."""
    line = " ".join(texts)
    if not line.isupper():
        return False
    letters = [character for character in line if character.isalpha()]
    return len(letters) > 3 and all(map(str.isupper, letters)) and len(line.split()) > 1


def same_word(word: str, cased: str) -> str:
    """``cased``, unless it is another word than ``word`` (folded): a capital ``ı`` is an ``I``, so ``SINIF`` is also
    what becomes of ``sinif``. A word that may be written must not become one that may not, such as the masked one."""
    return cased if word.isascii() or fold(cased) == fold(word) else word


def starts_sentence(before: str, *, first: bool) -> bool:
    """Whether a sentence begins behind this text, which stands between a fill and the one before it; ``first``: it
    begins the line."""
    if not first and not before.strip():
        return False
    match = _SENTENCE_START.search(before)
    if match is None or _ELLIPSIS.search(before):
        return False
    # With only opening signs before it, a slot starts a sentence if it starts the line.
    return first or bool(re.search(r"[.!?]", match.group()))


def _writes_lower_case(texts: Sequence[str]) -> bool:
    if any(_LONE_I.search(text) for text in texts):
        return True
    return _LOWER_START.match(texts[0]) is not None and not any(map(str.isupper, "".join(texts)))


def usual_forms(counts: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Folded word to the form in which it is usually written, for words that are hardly ever in lower case.

    ``counts`` are cased words with their counts. Of the forms with a capital the most frequent is taken.
    """
    total, lower, best = _case_counts(counts)
    return {folded: form for folded, (_, form) in best.items() if lower.get(folded, 0) <= _MOST_LOWER * total[folded]}


def small_words(counts: Iterable[tuple[str, int]]) -> set[str]:
    """The folded words that are in lower case more often than not; none where no word has a capital, and so nothing is
    known."""
    total, lower, best = _case_counts(counts)
    return {folded for folded, count in lower.items() if 2 * count > total[folded]} if best else set()


def _case_counts(
    counts: Iterable[tuple[str, int]],
) -> tuple[dict[str, int], dict[str, int], dict[str, tuple[int, str]]]:
    """By folded word: its count, that in lower case, and its most frequent form with a capital behind its count."""
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
