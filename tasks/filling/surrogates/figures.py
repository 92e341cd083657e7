"""Dates, numbers, sums and identifiers, in the form of the original if there is one.

A word may hold several dates and clock times (``10:30-11:45``). Each becomes a valid one. If other figures are among
them, all figures of the word are drawn. Every value of a form may be drawn, the original too.

A year moves cyclically in its block of ``YEARS``, so any number of surrogates leaves all years of the block possible.
The dates of a line or document move by the same number of years. Months, days and hours are redrawn.
"""

import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from tasks.filling.surrogates.characters import (
    is_numeric,
    like,
    other_characters,
    other_figures,
    other_half_of_day,
    other_letters,
    other_of_group,
)
from tasks.filling.surrogates.groups import no_list
from tasks.made_up.pools import shipped_words
from tasks.made_up.writing import ordinal_ending

YEARS = 20
"""Years of a block: 1980 to 1999, 2000 to 2019."""
_LONGEST_SPAN = 9
_DAY_OF_ANY_MONTH = 28
_ANY_FIGURE = re.compile(r"\d")
_END = r"(?![^\W_])"
_MAY_NAME = re.compile(r"[^\W\d_]{3}|(?![A-Za-z])[^\W\d_]")
_YEAR, _MONTH, _DAY = r"(?P<year>(?:1[5-9]|20)\d\d)", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<day>[12]\d|3[01]|0?[1-9])"
_ANY_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d|\d\d)"
_ORDERS = (
    rf"{_MONTH}(?P<sign>[-/]){_DAY}(?!\d)",
    rf"{_DAY}(?P<sign>[-/.]){_MONTH}(?!\d)",
    rf"{_MONTH}(?P<sign>\.){_DAY}(?!\d)",
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        r"(?P<year>(?:1[5-9]|20)\d\d|3[2-9]|[4-9]\d)(?P<sign>[-/.])" + rf"{_MONTH}(?P=sign){_DAY}(?!\d)",
        *(rf"{order}(?P=sign){_ANY_YEAR}(?!\d)" for order in _ORDERS),
        r"(?P<hour>2[0-4]|[01]?\d)(?P<sign>[:.])(?P<minute>[0-5]\d)"
        r"(?:(?P=sign)(?P<second>[0-5]\d)(?:[.,](?P<fraction>\d+))?)?(?!\d)",
        rf"{_YEAR}[-/.]{_MONTH}(?!\d)",
        rf"{_MONTH}[-/.]{_YEAR}(?!\d)",
        rf"{_YEAR}[-/](?P<end>\d\d)(?!\d)",
        *(rf"(?!\d\d?-){order}" for order in _ORDERS),
        rf"(?P<hour>1[0-2]|0?\d)(?=(?:-\d\d?)?[ap]\.?m{_END})",
        rf"(?P<only_day>\d\d?)(?P<ordinal>st|nd|rd|th){_END}",
        rf"(?:\d\d)?(?P<decade>[1-9])0'?s{_END}",
        rf"{_YEAR}(?!\d)",
        r"(?P<only_day>[12]\d|3[01]|0?[1-9])(?!\d)",
    )
)
"""The forms of dates and clock times, in the order of the tries."""
_IN_ORDER = ("year", "month", "day", "only_day", "hour", "minute", "second")
"""Parts that order dates of one form."""


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
        return like(original, random_numbers.choice(shipped_words()["weekday"]))
    return like(original, random_numbers.choice(shipped_words()["one_to_nine"][1:]))


def figure_by_class(label: str, random_numbers: random.Random, index: int, count: int) -> str:
    """A date, number, sum or identifier without an original: word ``index`` of ``count`` consecutive words."""
    words, choice = shipped_words(), random_numbers.choice
    if label == "DATE":
        year, month = str(random_numbers.randint(1990, 2025)), choice(words["month"])
        if count == 1:
            return choice([year, month, choice(words["weekday"])])
        return (month, str(random_numbers.randint(1, 28)), year)[min(index, 2)]
    if label == "IDENTIFIER":
        return other_characters("A1000000", random_numbers, letters=True)
    if index:
        return choice(words["currency" if label == "MONEY" and index == count - 1 else "multiple"])
    return str(random_numbers.randint(2, 60 if count == 1 else 9))


def other_date(original: str, random_numbers: random.Random, years: int) -> str:
    """A date, time, year or day in the form of a word with figures; ``years``: shift of a year in its block."""
    if original.isdigit() and len(original) <= 2:
        return _padded(random_numbers.randint(1, _DAY_OF_ANY_MONTH), original)
    matches: list[re.Match[str]] = []
    texts, place = [], 0
    while figure := _ANY_FIGURE.search(original, place):
        found = next((match for form in _FORMS if (match := form.match(original, figure.start()))), None)
        if found is None:
            return other_figures(original, random_numbers)
        texts.append(original[place : figure.start()])
        matches.append(found)
        place = found.end()
    texts.append(original[place:])
    if any(map(is_numeric, "".join(texts))):
        return other_figures(original, random_numbers)
    dates = [_other_numbers(match, random_numbers, years) for match in matches]
    if (
        len(dates) == 2
        and matches[0].re == matches[1].re
        and _key(matches[0].groupdict()) < _key(matches[1].groupdict())
    ):
        # A time span must not end before it begins.
        dates.sort(key=_key)
    made = _other_text(texts[0], random_numbers)
    for match, numbers, text in zip(matches, dates, texts[1:], strict=True):
        made += _written(match, numbers) + _other_text(text, random_numbers)
    return made


def _key(numbers: Mapping[str, Any]) -> list[int]:
    return [int(numbers[name]) for name in _IN_ORDER if numbers.get(name)]


def _other_numbers(found: re.Match[str], random_numbers: random.Random, years: int) -> dict[str, int]:
    """Random numbers of the same form. A possible month becomes a month, so a date is valid in either order."""
    made: dict[str, int] = {}
    old = {name: int(text) for name, text in found.groupdict().items() if text and text.isdigit()}
    for name, number in old.items():
        match name:
            case "year":
                made[name] = number - number % YEARS + (number + years) % YEARS
            case "month" | "day":
                made[name] = random_numbers.randint(1, 12 if number <= 12 else _DAY_OF_ANY_MONTH)
            case "only_day":
                made[name] = random_numbers.randint(1, _DAY_OF_ANY_MONTH)
            case "hour":
                made[name] = random_numbers.randint(1, 12 if number <= 12 else 23)
            case "minute" | "second":
                made[name] = random_numbers.randrange(60) if "second" in old else random_numbers.randrange(12) * 5
            case "decade":
                made[name] = random_numbers.randint(1, 9)
            case "fraction":
                made[name] = random_numbers.randrange(10 ** len(found[name]))
            case "end":
                # Consecutive years become consecutive years.
                follows = (old["year"] + 1) % 100 == number
                later = 1 if follows else random_numbers.randint(2, _LONGEST_SPAN)
                made[name] = (made["year"] + later) % 100
    return made


def _written(match: re.Match[str], numbers: Mapping[str, int]) -> str:
    """The original with the numbers in place of its own."""
    text, place = "", match.start()
    days = [match[name] for name in ("month", "day") if name in numbers]
    starts_with_year = "year" in numbers and match.start("year") == match.start()
    is_padded = any(each.startswith("0") for each in days) or (
        starts_with_year and all(len(each) == 2 for each in days)
    )
    for name, old in match.groupdict().items():
        if old is None or name == "sign":
            continue
        if name == "ordinal":
            new = like(old, ordinal_ending(str(numbers["only_day"])))
        elif name in ("month", "day"):
            new = f"{numbers[name]:02d}" if is_padded else str(numbers[name])
        elif name in ("hour", "only_day"):
            new = _padded(numbers[name], old)
        else:
            new = f"{numbers[name]:0{len(old)}d}"
        text += match.string[place : match.start(name)] + new
        place = match.end(name)
    return text + match.string[place : match.end()]


def _padded(number: int, original: str) -> str:
    return f"{number:02d}" if len(original) == 2 and original.startswith("0") else str(number)


def _other_text(text: str, random_numbers: random.Random) -> str:
    """The text next to dates. Signs and one or two letters (``T``, ``h``) are unchanged: they reveal only the form."""
    text = other_half_of_day(text, random_numbers)
    return other_letters(text, random_numbers) if _MAY_NAME.search(text) else text
