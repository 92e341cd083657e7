"""The form of a surrogate: figures for figures, capitals for capitals, a month for a month.

Everything here looks at one word, which may be a date, number, sum or identifier as a whole; what a word means beyond
its form (a name's gender, a place's kind) is in ``values``.

A word may hold several dates and clocks (``10:30-11:45``). Each becomes one that is possible; a word with figures of no
known form among them gets figures drawn altogether. Any value of a form may come out, the original too.

A year moves round its block of ``YEARS``, of which every year is as likely: however many surrogates of a year are seen,
all years of its block are left. The dates of a line or document move by the same number of years, so that their
distance stays (or wraps at the block's end), and they are one draw. Months, days and hours are drawn anew.
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
    """The word in the case of the original: all small, all capitals, or beginning with a capital. AM and PM are always
    written so, and say nothing of another word."""
    letters = [character for character in original if character.isalpha()]
    if not letters or (_HALF_OF_DAY.match(original) and original.isupper()):
        return word
    if all(character.islower() for character in letters):
        return same_word(word, word.lower())
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return same_word(word, word.upper())
    return same_word(word, word[:1].upper() + word[1:]) if letters[0].isupper() else word


def like_each(original: str, word: str) -> str:
    """The word with capitals where the original has some; in its case as a whole where they are not equally long."""
    if len(original) != len(word):
        return like(original, word)
    return "".join(new.upper() if old.isupper() else new for old, new in zip(original, word, strict=True))


def other_of_group(
    original: str, random_numbers: random.Random, on_list: Callable[[str], bool] = no_list
) -> str | None:
    """A month for a month, a number word for a number word; ``None`` for a word of no group."""
    group = group_of(original, GROUPS, on_list)
    return like(original, random_numbers.choice(group)) if group else None


def other_characters(original: str, random_numbers: random.Random, *, letters: bool) -> str:
    """A figure for every figure and numeric sign (``½``) and, with ``letters``, an ASCII letter of the same case for
    every letter.

    With ``letters`` combining marks and format characters, which would tell of its letters, are left out. A first
    figure that is not 0 does not become 0. What passes the check of payment cards (Luhn) still does. Addresses of IP
    version 4 become such ones, and hexadecimal identifiers stay hexadecimal.
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
    """An address of IP version 4, with numbers of as many figures as the original's."""

    def other(number: str) -> str:
        smallest = 10 ** (len(number) - 1)
        return str(random_numbers.randint(smallest, min(10 * smallest - 1, _LARGEST_BYTE)))

    return ".".join(map(other, original.split(".")))


def is_card(text: str) -> bool:
    """Whether the figures of a text pass the check of payment cards, and are as many as some have."""
    figures = [character for character in text if character.isdecimal()]
    return len(figures) >= _FEWEST_OF_CARD and _luhn(figures) == 0


def is_numeric(character: str) -> bool:
    """Whether a character is a figure or another numeric sign (``²``, ``½``, ``Ⅷ``), and no letter as ``五`` is."""
    return character.isdigit() or (character.isnumeric() and not character.isalpha())


def is_figure(word: str) -> bool:
    """Whether a word is a figure, with a short ending at most (``1,000``, ``5pm``, ``1st``): other letters may be a
    name."""
    return bool(_FIGURE.fullmatch(word)) or not any(map(str.isalpha, word))


def is_domain(word: str) -> bool:
    """Whether a word looks like a domain, with or without a path (``163.com``)."""
    return bool(_DOMAIN.fullmatch(word))


def other_figures(original: str, random_numbers: random.Random) -> str:
    """A figure for every figure, with the ending of the new one where it is an ordinal; other letters than a short
    ending are drawn too, for words of a group (``USD500``) words of it."""
    if ordinal := _ORDINAL.fullmatch(original):
        number = other_characters(ordinal.group(1), random_numbers, letters=False)
        return number + like(ordinal.group(2), ordinal_ending(number))
    if is_figure(original):
        return other_half_of_day(other_characters(original, random_numbers, letters=False), random_numbers)
    return other_letters(original, random_numbers)


def other_letters(original: str, random_numbers: random.Random) -> str:
    """Letters and figures drawn, for words of a group words of it."""
    return "".join(
        other_of_group(part, random_numbers) or other_characters(part, random_numbers, letters=True)
        for part in _LETTERS.split(original)
    )


def other_half_of_day(text: str, random_numbers: random.Random) -> str:
    """am or pm, where a text has one of them. There are but two: the original's may be drawn too, so that nothing
    follows from what is written."""
    return _HALF_OF_DAY.sub(lambda half: like(half.group(), random_numbers.choice("ap")), text)


def ordinal_ending(number: str) -> str:
    """The ending of a number in figures: the original's would tell the last figure (``1st``)."""
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
    """A date or clock in a word, and what it becomes."""

    form: int
    old: tuple[int, ...]
    """Greater where it is later, of dates and clocks of one form."""
    new: tuple[int, ...]
    text: str


_Made = tuple[tuple[int, ...], tuple[int, ...], str]


def other_date(original: str, random_numbers: random.Random, years: int) -> str:
    """A date, time, year or day in the same form, for a word with figures; ``years`` round its block for a year."""
    if original.isdigit() and len(original) <= 2:
        return _number(_within(28, random_numbers), padded=_is_padded(original))
    made = _other_dates(original, random_numbers, years)
    return other_figures(original, random_numbers) if made is None else made


def _other_dates(original: str, random_numbers: random.Random, years: int) -> str | None:
    """Every date and clock of a word drawn; ``None`` where other figures are among them."""
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
            # A stretch of time must not end before it begins.
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
    """What stands beside dates: signs and a letter or two (``T``, ``h``) stay, for they tell no more than the form."""
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
    """``2018/19`` or ``1990-95``; of two years that follow each other come such ones."""
    year, sign, end = match.groups()
    new = _moved_year(year, years)
    later = 1 if (int(year) + 1) % 100 == int(end) else random_numbers.randint(2, _LONGEST_SPAN)
    return (int(year), int(end)), (new, later), f"{new}{sign}{(new + later) % 100:02d}"


def _month_and_day(match: re.Match[str], random_numbers: random.Random, _: int) -> _Made | None:
    return _day_and_month([match.group(1), match.group(3)], match.group(2), random_numbers)


def _day_and_month(parts: list[str], sign: str, random_numbers: random.Random) -> _Made | None:
    """What may be a month stays one, so that it is one in either order; a day is one that every month has."""
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
"""The forms of dates and clocks, in the order in which they are tried."""


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
    """A date, number, sum or identifier in the form of the original; ``on_list``: of words that are kept; ``years``:
    what dates move by, drawn where it is not given."""
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
    """The same without an original: word ``index`` of ``count`` that stand side by side."""
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
