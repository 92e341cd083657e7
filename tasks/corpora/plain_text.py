"""Text in plain characters: full-width, circled, squared and otherwise styled characters are replaced.

Words, masking, audit and language models share this definition. ``plain`` returns a text of equal length.
``plain_view`` also removes format characters, which would mislead patterns and models, and returns the offsets of the
remaining characters.
"""

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files

import regex

DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Bidirectional controls, which can show text in another order than it has."""
_HYPHENS = "\u2010\u2011\ufe63\uff0d"
_STYLED_LETTER = re.compile(r"(CAPITAL|SMALL) LETTER ([A-Z])$")
_REGIONAL = re.compile("[\U0001f1e6-\U0001f1ff]+")
_FIRST_REGIONAL = 0x1F1E6
_FLAGS_BEYOND_STATES = ("AC", "CP", "CQ", "DG", "EA", "EU", "IC", "TA", "UN", "XK")
_DASHES = "\u2012\u2013\u2212"
_DASHED_NUMBER = re.compile(rf"\d+(?:[{_DASHES}]\d+){{2,}}")
_DASHES_TO_HYPHENS = str.maketrans(dict.fromkeys(_DASHES, "-"))
# Joiners shape letters of other scripts and put emoji together.
_HIDDEN = regex.compile(r"[\p{Cf}--[\u200c\u200d]]|(?<![\u0600-\u1dff\p{So}\p{Sk}\p{M}])[\u200c\u200d]", regex.VERSION1)


def plain(text: str) -> str:
    """The text with plain characters for styled ones: ``Ⓐ`` and ``🅰`` become ``A``, ``＠`` becomes ``@``.

    No-break and other spaces become spaces, hyphens ``-``. The length is unchanged: a sign for several letters (``™``)
    stays as it is. Regional indicators are letters, unless all of them are flags.
    """
    if text.isascii():
        return text
    return _REGIONAL.sub(_flags_or_letters, text).translate(_PLAIN)


@lru_cache(maxsize=1 << 14)
def stands_for_letters(character: str) -> bool:
    """Whether a character is a letter or digit, or a sign for some (``Ⓐ``, ``™``)."""
    return character.isalnum() or any(map(str.isalnum, unicodedata.normalize("NFKC", _PLAIN[ord(character)])))


def plain_view(text: str) -> tuple[str, list[int] | None]:
    """The text in plain characters without format characters, and the offset of each remaining character.

    ``None``: the offsets are unchanged. Dashes in numbers of three groups or more become hyphens; those of years stay.
    """
    if text.isascii():
        return text, None
    view = _DASHED_NUMBER.sub(lambda number: number.group().translate(_DASHES_TO_HYPHENS), plain(text))
    hidden = {match.start() for match in _HIDDEN.finditer(view)}
    if not hidden:
        return view, None
    places = [place for place in range(len(view)) if place not in hidden]
    return "".join([view[place] for place in places]), places


class _PlainSigns(dict[int, str]):
    """Plain characters by character, filled on first use."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _plain_sign(chr(code))
        return found


_PLAIN = _PlainSigns()


def _plain_sign(character: str) -> str:
    if character == "№":
        return " "  # it separates, though its compatible form is the letters "No"
    if character in _HYPHENS:
        return "-"
    compatible = unicodedata.normalize("NFKC", character)
    category = unicodedata.category(character)
    if category == "So":
        # Squares have no compatible letter, parenthesised letters have it between two signs.
        if styled := _STYLED_LETTER.search(unicodedata.name(character, "")):
            case, letter = styled.groups()
            return letter if case == "CAPITAL" else letter.lower()
    elif category == "No" or compatible.isalnum() != character.isalnum():
        return character
    return compatible if len(compatible) == 1 else character


def _flags_or_letters(run: re.Match[str]) -> str:
    letters = "".join(chr(ord("A") + ord(sign) - _FIRST_REGIONAL) for sign in run.group())
    pairs = {letters[place : place + 2] for place in range(0, len(letters), 2)}
    return run.group() if pairs <= _flags() else letters


@cache
def _flags() -> frozenset[str]:
    """The codes of ISO 3166, as the time zone database lists them."""
    table = files("tzdata").joinpath("zoneinfo/iso3166.tab").read_text(encoding="utf-8")
    return frozenset((*re.findall(r"^([A-Z]{2})\t", table, re.MULTILINE), *_FLAGS_BEYOND_STATES))
