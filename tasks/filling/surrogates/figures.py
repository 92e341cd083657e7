"""Surrogates in the form of the original: dates, numbers, sums and identifiers, and the case of letters.

Each function reads one word, which may be a whole date, number, sum or identifier. ``values`` handles the meaning of
words (a name's gender, a place's kind).

A word may hold several dates and clock times (``10:30-11:45``). Each becomes a valid one. If other figures are among
them, all figures of the word are drawn. Every value of a form may be drawn, the original too.

A year moves cyclically in its block of ``YEARS``, and every year of the block is equally likely. So any number of
surrogates of a year leaves all years of its block possible. The dates of a line or document move by the same number of
years, in one draw, so their distance is unchanged (or wraps at the block's end). Months, days and hours are redrawn.
"""

import random
import re
import string
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from tasks.corpora.identifiers import is_hexadecimal
from tasks.filling.masked_sentence import same_word
from tasks.filling.surrogates.groups import CURRENCIES, GROUPS, MONTHS, ONES, WEEKDAYS, group_of, no_list, stand_ins

_FIGURE = re.compile(r"\d[\d.,:/\-]*[A-Za-z]{0,2}", re.ASCII)
_ORDINAL = re.compile(r"([\d.,]*\d)(st|nd|rd|th)", re.IGNORECASE)
_HALF_OF_DAY = re.compile(r"(?<![^\W\d_])[ap](?=\.?m(?![^\W_]))", re.IGNORECASE)
_LETTERS = re.compile(r"([^\W\d_]+)")
_DOMAIN = re.compile(r"(?:\w+://)?[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?:[:/].*)?", re.DOTALL)
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS = re.compile(rf"(?<![\w.]){_BYTE}(?:\.{_BYTE}){{3}}(?![\w.])")
_LARGEST_BYTE = 255
_FEWEST_OF_CARD = 13
_PARTS_OF_LETTERS = ("Mn", "Mc", "Me", "Cf")


def like(original: str, word: str) -> str:
    """The word in the case of the original: all small, all capitals, or with a first capital. AM and PM are always
    capitals, so they do not change the word."""
    letters = [character for character in original if character.isalpha()]
    if not letters or (_HALF_OF_DAY.match(original) and original.isupper()):
        return word
    if all(character.islower() for character in letters):
        return same_word(word, word.lower())
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return same_word(word, word.upper())
    return same_word(word, word[:1].upper() + word[1:]) if letters[0].isupper() else word


def like_each(original: str, word: str) -> str:
    """The word with the original's capitals by position; by ``like`` if the lengths differ."""
    if len(original) != len(word):
        return like(original, word)
    return "".join(new.upper() if old.isupper() else new for old, new in zip(original, word, strict=True))


def other_of_group(
    original: str, random_numbers: random.Random, on_list: Callable[[str], bool] = no_list
) -> str | None:
    """A random word of the original's group, such as months or number words; ``None`` for a word without a group."""
    group = group_of(original, GROUPS, on_list)
    return like(original, random_numbers.choice(group)) if group else None


def other_characters(original: str, random_numbers: random.Random, *, letters: bool) -> str:
    """The word with every figure and numeric sign (``½``) replaced by a random figure. With ``letters``, every letter
    becomes a random ASCII letter of the same case.

    With ``letters``, combining marks and format characters are left out, since they would reveal letters. A first
    figure other than 0 does not become 0. A payment card number still passes its check (Luhn). An IPv4 address remains
    one, and a hexadecimal identifier remains hexadecimal.
    """
    alphabet = "abcdef" if is_hexadecimal(original) else string.ascii_lowercase
    made: list[str] = []
    first = True
    for character in original:
        if is_numeric(character):
            made.append(random_numbers.choice("123456789" if first and character != "0" else string.digits))
            first = False
        elif letters and character.isalpha():
            letter = random_numbers.choice(alphabet)
            made.append(letter.upper() if character.isupper() else letter)
        elif not letters or unicodedata.category(character) not in _PARTS_OF_LETTERS:
            made.append(character)
    if is_card(original):
        last = max(index for index, character in enumerate(made) if character.isdigit())
        made[last] = "0"
        made[last] = str(-_luhn([character for character in made if character.isdigit()]) % 10)
    text = "".join(made)
    for address in _ADDRESS.finditer(original) if original.isascii() else ():
        text = text[: address.start()] + _other_address(address.group(), random_numbers) + text[address.end() :]
    return text


def _other_address(original: str, random_numbers: random.Random) -> str:
    """A random IPv4 address whose numbers have the lengths of the original's."""

    def other(number: str) -> str:
        smallest = 10 ** (len(number) - 1)
        return str(random_numbers.randint(smallest, min(10 * smallest - 1, _LARGEST_BYTE)))

    return ".".join(map(other, original.split(".")))


def is_card(text: str) -> bool:
    """Whether the figures of a text pass the check of payment cards (Luhn) and are at least 13."""
    figures = [character for character in text if character.isdecimal()]
    return len(figures) >= _FEWEST_OF_CARD and _luhn(figures) == 0


def is_numeric(character: str) -> bool:
    """Whether a character is a figure or another numeric sign (``²``, ``½``, ``Ⅷ``), but no letter such as ``五``."""
    return character.isdigit() or (character.isnumeric() and not character.isalpha())


def is_figure(word: str) -> bool:
    """Whether a word is a figure, at most with a short ending (``1,000``, ``5pm``, ``1st``). More letters may be a
    name."""
    return bool(_FIGURE.fullmatch(word)) or not any(map(str.isalpha, word))


def is_domain(word: str) -> bool:
    """Whether a word looks like a domain, with or without a path (``163.com``)."""
    return bool(_DOMAIN.fullmatch(word))


def other_figures(original: str, random_numbers: random.Random) -> str:
    """The word with random figures; an ordinal gets the ending of the new number. Letters other than a short ending are
    drawn too, and a word of a group (``USD500``) becomes another one of the group."""
    if ordinal := _ORDINAL.fullmatch(original):
        number = other_characters(ordinal.group(1), random_numbers, letters=False)
        return number + like(ordinal.group(2), ordinal_ending(number))
    if is_figure(original):
        return other_half_of_day(other_characters(original, random_numbers, letters=False), random_numbers)
    return other_letters(original, random_numbers)


def other_letters(original: str, random_numbers: random.Random) -> str:
    """The text with random letters and figures; a word of a group becomes a random one of the group."""
    return "".join(
        other_of_group(part, random_numbers) or other_characters(part, random_numbers, letters=True)
        for part in _LETTERS.split(original)
    )


def other_half_of_day(text: str, random_numbers: random.Random) -> str:
    """The text with am and pm drawn at random. The original's may be drawn too, so the result reveals nothing."""
    return _HALF_OF_DAY.sub(lambda half: like(half.group(), random_numbers.choice("ap")), text)


def ordinal_ending(number: str) -> str:
    """The ordinal ending of a number in figures. The original's ending would reveal the last figure (``1st``)."""
    return "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")


def _luhn(figures: list[str]) -> int:
    doubled = [int(figure) * (2 if place % 2 else 1) for place, figure in enumerate(reversed(figures))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10


YEARS = 20
"""Years of a block: 1980 to 1999, 2000 to 2019."""
_LONGEST_SPAN = 9
_YEAR = r"(?:1[5-9]|20)\d\d"
_ANY_FIGURE = re.compile(r"\d")
_END = r"(?![^\W_])"
_MAY_NAME = re.compile(r"[^\W\d_]{3}|(?![A-Za-z])[^\W\d_]")


class _Part(NamedTuple):
    """A date or clock time in a word, and its surrogate."""

    form: int
    old: tuple[int, ...]
    """Sort key of the original: a later date or clock time of one form has a greater key."""
    new: tuple[int, ...]
    text: str


_Made = tuple[tuple[int, ...], tuple[int, ...], str]


def other_date(original: str, random_numbers: random.Random, years: int) -> str:
    """A date, time, year or day in the form of a word with figures; ``years``: shift of a year in its block."""
    if original.isdigit() and len(original) <= 2:
        return _number(_within(28, random_numbers), padded=_is_padded(original))
    made = _other_dates(original, random_numbers, years)
    return other_figures(original, random_numbers) if made is None else made


def _other_dates(original: str, random_numbers: random.Random, years: int) -> str | None:
    """The word with every date and clock time drawn; ``None`` if it has other figures."""
    parts: list[_Part] = []
    texts: list[str] = []
    place = 0
    while figure := _ANY_FIGURE.search(original, place):
        texts.append(original[place : figure.start()])
        found = _part(original, figure.start(), random_numbers, years)
        if found is None:
            return None
        part, place = found
        parts.append(part)
    texts.append(original[place:])
    if any(map(is_numeric, "".join(texts))):
        return None
    if len(parts) == 2:
        first, second = parts
        if first.form == second.form and first.old < second.old and first.new > second.new:
            # A time span must not end before it begins.
            parts.reverse()
    made = [_other_text(texts[0], random_numbers)]
    for part, text in zip(parts, texts[1:], strict=True):
        made += [part.text, _other_text(text, random_numbers)]
    return "".join(made)


def _part(original: str, start: int, random_numbers: random.Random, years: int) -> tuple[_Part, int] | None:
    for form, (pattern, make) in enumerate(_FORMS):
        if (match := pattern.match(original, start)) and (made := make(match, random_numbers, years)):
            return _Part(form, *made), match.end()
    return None


def _other_text(text: str, random_numbers: random.Random) -> str:
    """The text next to dates. Signs and one or two letters (``T``, ``h``) are unchanged: they reveal only the form."""
    text = other_half_of_day(text, random_numbers)
    return other_letters(text, random_numbers) if _MAY_NAME.search(text) else text


def _whole_date(match: re.Match[str], random_numbers: random.Random, years: int) -> _Made | None:
    parts, sign = [match.group(1), match.group(3), match.group(4)], match.group(2)
    year = 0 if len(parts[0]) == 4 or int(parts[0]) > 31 else 2
    if len(parts[year]) == 1 or len(parts[2 - year]) == 4 or (year == 0 and int(parts[1]) > 12):
        return None
    day_and_month = [part for index, part in enumerate(parts) if index != year]
    made = _day_and_month(day_and_month, "-" if year == 0 else sign, random_numbers)
    if made is None:
        return None
    number = _moved_year(parts[year], years)
    written = made[2].split("-" if year == 0 else sign)
    written.insert(year, f"{number:0{len(parts[year])}d}")
    return (int(parts[year]), *made[0]), (number, *made[1]), sign.join(written)


def _clock(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made | None:
    hour, sign, minute, second, fraction = match.groups()
    if int(hour) > 24 or int(minute) > 59 or int(second or 0) > 59:
        return None
    largest = 12 if int(hour) <= 12 else 23
    new = [_within(largest, random_numbers), random_numbers.randrange(12) * 5, 0]
    text = f"{_number(new[0], padded=_is_padded(hour))}{sign}{new[1]:02d}"
    if second:
        new[1:] = random_numbers.randrange(60), random_numbers.randrange(60)
        text = f"{text[:-2]}{new[1]:02d}{sign}{new[2]:02d}"
    text += other_characters(fraction, random_numbers, letters=False) if fraction else ""
    return (int(hour), int(minute), int(second or 0)), tuple(new), text


def _month_of_year(match: re.Match[str], random_numbers: random.Random, years: int) -> _Made | None:
    """``2018-05`` or ``10/2018``."""
    year_first = len(match.group(1)) == 4
    year, month = (match.group(1), match.group(3)) if year_first else (match.group(3), match.group(1))
    if not 1 <= int(month) <= 12:
        return None
    new = _moved_year(year, years), _within(12, random_numbers)
    written = [str(new[0]), _number(new[1], padded=_is_padded(month) or (year_first and len(month) == 2))]
    return (int(year), int(month)), new, match.group(2).join(written if year_first else written[::-1])


def _years(match: re.Match[str], random_numbers: random.Random, years: int) -> _Made:
    """``2018/19`` or ``1990-95``; consecutive years become consecutive years."""
    year, sign, end = match.groups()
    new = _moved_year(year, years)
    later = 1 if (int(year) + 1) % 100 == int(end) else random_numbers.randint(2, _LONGEST_SPAN)
    return (int(year), int(end)), (new, later), f"{new}{sign}{(new + later) % 100:02d}"


def _month_and_day(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made | None:
    return _day_and_month([match.group(1), match.group(3)], match.group(2), random_numbers)


def _day_and_month(parts: list[str], sign: str, random_numbers: random.Random) -> _Made | None:
    """A possible month becomes a month, so the date is valid in either order. A day is at most 28."""
    old = [int(part) for part in parts]
    if not (1 <= min(old) <= 12 and max(old) <= 31):
        return None
    new = [_within(12 if number <= 12 else 28, random_numbers) for number in old]
    padded = any(map(_is_padded, parts))
    text = sign.join(_number(number, padded=padded) for number in new)
    order = -1 if sign == "." else 1
    return tuple(old[::order]), tuple(new[::order]), text


def _hour(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made | None:
    old, new = int(match.group()), _within(12, random_numbers)
    return ((old,), (new,), _number(new, padded=_is_padded(match.group()))) if old <= 12 else None


def _ordinal(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made:
    day = _within(28, random_numbers)
    number = _number(day, padded=_is_padded(match.group(1)))
    return (int(match.group(1)),), (day,), number + like(match.group(2), ordinal_ending(str(day)))


def _decade(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made:
    new = random_numbers.choice("123456789")
    return (int(match.group(2)),), (int(new),), f"{match.group(1)}{new}{match.group(3)}"


def _year(match: re.Match[str], _: random.Random, years: int) -> _Made:
    new = _moved_year(match.group(), years)
    return (int(match.group()),), (new,), str(new)


def _day(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made | None:
    old, new = int(match.group()), _within(28, random_numbers)
    return ((old,), (new,), _number(new, padded=_is_padded(match.group()))) if 1 <= old <= 31 else None


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], random.Random, int], _Made | None]], ...] = (
    (re.compile(rf"({_YEAR}|\d\d?)([-/.])(\d\d?)\2({_YEAR}|\d\d?)(?!\d)"), _whole_date),
    (re.compile(r"(\d\d?)([:.])(\d\d)(?:\2(\d\d)([.,]\d+)?)?(?!\d)"), _clock),
    (re.compile(rf"({_YEAR})([-/.])(\d\d?)(?!\d)"), _month_of_year),
    (re.compile(rf"(\d\d?)([-/.])({_YEAR})(?!\d)"), _month_of_year),
    (re.compile(rf"({_YEAR})([-/])(\d\d)(?!\d)"), _years),
    (re.compile(r"(\d\d?)([/.])(\d\d?)(?!\d)"), _month_and_day),
    (re.compile(rf"\d\d?(?=(?:-\d\d?)?[ap]\.?m{_END})", re.IGNORECASE), _hour),
    (re.compile(rf"(\d\d?)(st|nd|rd|th){_END}", re.IGNORECASE), _ordinal),
    (re.compile(rf"((?:\d\d)?)([1-9])(0'?s){_END}", re.IGNORECASE), _decade),
    (re.compile(rf"{_YEAR}(?!\d)"), _year),
    (re.compile(r"\d\d?(?!\d)"), _day),
)
"""The forms of dates and clock times, in the order of the tries."""


def _moved_year(year: str, years: int) -> int:
    start = int(year) - int(year) % YEARS
    return start + (int(year) + years) % YEARS


def _within(largest: int, random_numbers: random.Random) -> int:
    return random_numbers.randint(1, largest)


def _is_padded(number: str) -> bool:
    return len(number) == 2 and number.startswith("0")


def _number(number: int, *, padded: bool) -> str:
    return f"{number:02d}" if padded else str(number)


def figure(
    label: str,
    random_numbers: random.Random,
    original: str,
    on_list: Callable[[str], bool] = no_list,
    years: int | None = None,
) -> str:
    """A date, number, sum or identifier in the form of the original. ``on_list``: whether a word is never masked;
    ``years``: shift of dates, drawn if not given."""
    if label == "IDENTIFIER":
        return other_characters(original, random_numbers, letters=True)
    if any(map(str.isdigit, original)):
        if label != "DATE":
            return other_figures(original, random_numbers)
        return other_date(original, random_numbers, random_numbers.randrange(YEARS) if years is None else years)
    if found := other_of_group(original, random_numbers, on_list):
        return found
    if label == "DATE":
        return like(original, random_numbers.choice(stand_ins(original, on_list) or WEEKDAYS))
    return like(original, random_numbers.choice(ONES[1:]))


def figure_by_class(label: str, random_numbers: random.Random, index: int, count: int) -> str:
    """A date, number, sum or identifier without an original: word ``index`` of ``count`` consecutive words."""
    if label == "DATE":
        year, month = str(random_numbers.randint(1990, 2025)), random_numbers.choice(MONTHS)
        if count == 1:
            return random_numbers.choice([year, month, random_numbers.choice(WEEKDAYS)])
        return (month, str(random_numbers.randint(1, 28)), year)[min(index, 2)]
    if label == "IDENTIFIER":
        return other_characters("A1000000", random_numbers, letters=True)
    if index and label == "MONEY" and index == count - 1:
        return random_numbers.choice(CURRENCIES)
    if index:
        return random_numbers.choice("hundred thousand million billion trillion".split())
    return str(random_numbers.randint(2, 60)) if count == 1 else str(random_numbers.randint(2, 9))
