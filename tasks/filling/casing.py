"""Capital letters of a fill: a filler that knows lower case only must not leave ``london`` in cased text.

What the unmasked part of a line shows decides, nothing else:

- a line whose letters are all capitals (two words or more) gets its fills in capitals;
- a line that writes ``i`` for ``I``, or begins a sentence in lower case and has no capital at all, gets them in lower
  case;
- in any other line a fill at the start of a sentence begins with a capital, ``i`` is ``I``, and another word is
  written as the word list writes it nearly always (``London``, ``NASA``). Without a word list it stays as it is.

No fill becomes another word by its case (``same_word``).

A fill starts a sentence where nothing stands before it in the line but opening signs, or where a sentence's end
(``. ! ?``) and white space do.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from tasks.corpora.words import fold

_SENTENCE_START = re.compile(r"(?:^|[.!?][\"'”’)\]]*\s)[\s\"'“‘(\[]*$")
_LOWER_START = re.compile(r"(?:^|[.!?]\s)[\s\"'“‘(\[]*[a-z]")
_LONE_I = re.compile(r"(?<![\w.'’])i(?![\w.])")
_ELLIPSIS = re.compile(r"\.\.+\s*$|…\s*$")
_MOST_LOWER = 0.1
"""A word is written in capitals where at most this share of its occurrences in the word list is in lower case."""


class Casing:
    """Writes the fills of a line as the line writes its words."""

    def __init__(self, forms: Mapping[str, str], *, filler_is_cased: bool) -> None:
        """``forms``: folded word to its usual form, from ``usual_forms``, or empty."""
        self._forms, self._filler_is_cased = forms, filler_is_cased

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The words of a line's slots, cased; ``texts`` are the ``n + 1`` texts round the ``n`` slots."""
        line = " ".join(texts)
        letters = [character for character in line if character.isalpha()]
        capitals = sum(character.isupper() for character in letters)
        if letters and capitals == len(letters) and len(line.split()) > 1 and len(letters) > 3:
            return [same_word(word, word.upper()) for word in words]
        if _writes_lower_case(texts, capitals):
            return [same_word(word, word.lower()) for word in words]
        cased = []
        for index, word in enumerate(words):
            if not self._filler_is_cased:
                word = self._forms.get(word, "I" if word == "i" else word)
            if starts_sentence(texts, index):
                word = same_word(word, word[0].upper() + word[1:])
            cased.append(word)
        return cased


def same_word(word: str, cased: str) -> str:
    """``cased``, unless it is another word than ``word`` (folded): a capital ``ı`` is an ``I``, so ``SINIF`` is also
    what becomes of ``sinif``. A word that may be written must not become one that may not, such as the masked one."""
    return cased if word.isascii() or fold(cased) == fold(word) else word


def starts_sentence(texts: Sequence[str], index: int) -> bool:
    """Whether slot ``index`` is where a sentence begins."""
    if index and not texts[index].strip():
        return False
    before = texts[index]
    match = _SENTENCE_START.search(before)
    if match is None or _ELLIPSIS.search(before):
        return False
    # With only opening signs before it, a slot starts a sentence if it starts the line.
    return index == 0 or bool(re.search(r"[.!?]", match.group()))


def _writes_lower_case(texts: Sequence[str], capitals: int) -> bool:
    if any(_LONE_I.search(text) for text in texts):
        return True
    return capitals == 0 and _LOWER_START.match(texts[0]) is not None


def usual_forms(counts: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Folded word to the form in which it is usually written, for words that are hardly ever in lower case.

    ``counts`` are cased words with their counts. Of the forms with a capital the most frequent is taken.
    """
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
    return {folded: form for folded, (_, form) in best.items() if lower.get(folded, 0) <= _MOST_LOWER * total[folded]}
