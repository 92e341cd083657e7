"""The form of a surrogate: figures for figures, capitals for capitals, a month for a month.

Everything here looks at one word. What a word means beyond its form (a name's gender, a place's kind) is in
``surrogate_values``.
"""

import random
import re
import string
import unicodedata
from collections.abc import Collection

from tasks.corpora.words import fold
from tasks.filling.casing import same_word

_MONTHS = "January February March April May June July August September October November December".split()
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_ONES = "one two three four five six seven eight nine".split()
_MULTIPLES = "hundred thousand million billion trillion dozen".split()
_UNITS_OF_TIME = "second minute hour day week month year decade".split()

GROUPS: tuple[tuple[str, ...], ...] = tuple(
    map(
        tuple,
        (
            _MONTHS,
            [month[:3] for month in _MONTHS],
            _WEEKDAYS,
            [f"{day}s" for day in _WEEKDAYS],
            [day[:3] for day in _WEEKDAYS],
            _ONES,
            "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
            "twenty thirty forty fifty sixty seventy eighty ninety".split(),
            "twenties thirties forties fifties sixties seventies eighties nineties".split(),
            "first second third fourth fifth sixth seventh eighth ninth tenth".split(),
            _MULTIPLES,
            [f"{word}s" for word in _MULTIPLES],
            "once twice thrice".split(),
            "half quarter third".split(),
            _UNITS_OF_TIME,
            [f"{word}s" for word in _UNITS_OF_TIME],
            "yesterday today tomorrow tonight".split(),
            "morning afternoon evening night noon midnight".split(),
            "mornings afternoons evenings nights".split(),
            "spring summer autumn winter".split(),
            "Christmas Easter Thanksgiving Halloween".split(),
            "last next this".split(),
            "ago earlier later".split(),
            "early mid late".split(),
            "dollars euros pounds francs bucks".split(),
            "dollar euro pound franc buck".split(),
            "cents pence".split(),
            "USD EUR GBP CHF".split(),
        ),
    )
)
"""Words that stand for each other, in the order in which a word is looked up."""
_CLOCK = re.compile(r"(\d{1,2})([:.])(\d\d)(\D.*)?")
_HOUR = re.compile(r"(\d{1,2})([ap]\.?m)", re.IGNORECASE)
_ORDINAL = re.compile(r"(\d{1,2})(st|nd|rd|th)", re.IGNORECASE)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_DECADE = re.compile(r"(\d\d)?([1-9])0'?s")
_DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})(?:\2(\d{1,4}))?")
_FIGURE = re.compile(r"\d[\d.,:/\-]*[A-Za-z]{0,2}", re.ASCII)
_LETTERS = re.compile(r"([^\W\d_]+)")
_DOMAIN = re.compile(r"(?:\w+://)?[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?:[:/].*)?", re.DOTALL)
_MAY_NAME = re.compile(r"[^\W\d_]{3}|(?![A-Za-z])[^\W\d_]")
_PARTS_OF_LETTERS = ("Mn", "Mc", "Me", "Cf")
_NEAR_YEARS = 9


def like(original: str, word: str) -> str:
    """The word in the case of the original: all small, all capitals, or beginning with a capital."""
    letters = [character for character in original if character.isalpha()]
    if not letters:
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


def other_of_group(original: str, random_numbers: random.Random) -> str | None:
    """Another month for a month, another number word for a number word; ``None`` for a word of no group."""
    folded = fold(original)
    for group in GROUPS:
        others = [word for word in group if fold(word) != folded]
        if len(others) < len(group):
            return like(original, random_numbers.choice(others))
    return None


def other_characters(original: str, random_numbers: random.Random, *, letters: bool) -> str:
    """A figure for every figure and, with ``letters``, an ASCII letter of the same case for every letter.

    With ``letters`` no three letters side by side are those of the original (whatever their case), and combining marks
    and format characters, which would tell of its letters, are left out. A first figure that is not 0 does not become
    0. What passes the check of payment cards (Luhn) still does.
    """
    figures = [character for character in original if character.isdecimal()]
    known = _triples(fold(original)) if letters else frozenset()
    made: list[str] = []
    first = True
    for character in original:
        if character.isdigit() or (letters and character.isnumeric() and not character.isalpha()):
            made.append(random_numbers.choice("123456789" if first and character != "0" else string.digits))
            first = False
        elif letters and character.isalpha():
            made.append(_letter(character.isupper(), "".join(made[-2:]).lower(), known, random_numbers))
        elif not letters or unicodedata.category(character) not in _PARTS_OF_LETTERS:
            made.append(character)
    if len(figures) >= 13 and _luhn(figures) == 0:
        last = max(index for index, character in enumerate(made) if character.isdigit())
        made[last] = "0"
        made[last] = str(-_luhn([character for character in made if character.isdigit()]) % 10)
    return "".join(made)


def _triples(text: str) -> frozenset[str]:
    return frozenset(part for index in range(len(text) - 2) if (part := text[index : index + 3]).isalpha())


def _letter(capital: bool, before: str, known: Collection[str], random_numbers: random.Random) -> str:
    """A letter that does not end one of the known triples; ``before``: two characters before it, in small letters."""
    letters = string.ascii_uppercase if capital else string.ascii_lowercase
    letter = random_numbers.choice(letters)
    if before + letter.lower() in known:
        others = [letter for letter in letters if before + letter.lower() not in known]
        letter = random_numbers.choice(others or letters)
    return letter


def is_figure(word: str) -> bool:
    """Whether a word is a figure, with a short ending at most (``1,000``, ``5pm``, ``1st``): other letters may be a
    name."""
    return bool(_FIGURE.fullmatch(word)) or not any(map(str.isalpha, word))


def is_domain(word: str) -> bool:
    """Whether a word looks like a domain, with or without a path (``163.com``)."""
    return bool(_DOMAIN.fullmatch(word))


def _other_figures(original: str, random_numbers: random.Random) -> str:
    """A figure for every figure; other letters than a short ending change too, words of a group (``USD500``) into
    others of it."""
    if is_figure(original):
        return other_characters(original, random_numbers, letters=False)
    made = "".join(
        other_of_group(part, random_numbers) or other_characters(part, random_numbers, letters=True)
        for part in _LETTERS.split(original)
    )
    if _triples(fold(made)) & _triples(fold(original)):
        # Another word of a group has letters of the original by chance.
        return other_characters(original, random_numbers, letters=True)
    return made


def _luhn(figures: list[str]) -> int:
    doubled = [int(figure) * (2 if place % 2 else 1) for place, figure in enumerate(reversed(figures))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10


def other_date(original: str, random_numbers: random.Random) -> str | None:
    """Another date, time, year or day in the same figures; ``None`` for a word without figures."""
    if not any(map(str.isdigit, original)):
        return None
    if _YEAR.fullmatch(original):
        return str(int(original) + random_numbers.choice([-1, 1]) * random_numbers.randint(1, _NEAR_YEARS))
    if decade := _DECADE.fullmatch(original):
        figure = random_numbers.choice([d for d in "123456789" if d != decade.group(2)])
        return original[: decade.start(2)] + figure + original[decade.end(2) :]
    date = _DATE.fullmatch(original)
    clock = None if date and date.group(4) else _CLOCK.fullmatch(original)
    if clock:
        hour = _within(clock.group(1), 12 if int(clock.group(1)) <= 12 else 23, random_numbers)
        time, rest = f"{hour}{clock.group(2)}{random_numbers.randrange(12) * 5:02d}", clock.group(4) or ""
        return time + (other_characters(rest, random_numbers, letters=True) if _MAY_NAME.search(rest) else rest)
    if date:
        parts = [date.group(1), date.group(3), *filter(None, [date.group(4)])]
        return date.group(2).join(_part_of_date(part, random_numbers) for part in parts)
    if hour_of_day := _HOUR.fullmatch(original):
        return f"{_within(hour_of_day.group(1), 12, random_numbers)}{hour_of_day.group(2)}"
    if ordinal := _ORDINAL.fullmatch(original):
        day = int(_within(ordinal.group(1), 28, random_numbers))
        ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        return f"{day}{like(ordinal.group(2), ending)}"
    if original.isdigit() and len(original) <= 2:
        return _within(original, 28, random_numbers)
    return _other_figures(original, random_numbers)


def _part_of_date(part: str, random_numbers: random.Random) -> str:
    if len(part) == 4:
        return str(int(part) + random_numbers.randint(-_NEAR_YEARS, _NEAR_YEARS))
    # What may be a month must stay one; so must a day that every month has.
    return _within(part, 12 if int(part) <= 12 else 28, random_numbers)


def _within(original: str, largest: int, random_numbers: random.Random) -> str:
    """A number from 1 to ``largest`` with as many leading zeros as the original allows."""
    number = random_numbers.randint(1, largest)
    return f"{number:0{len(original)}d}" if original.startswith("0") else str(number)


def figure(label: str, random_numbers: random.Random, original: str) -> str:
    """A date, number, sum or identifier in the form of the original."""
    if label == "DATE":
        found = other_date(original, random_numbers) or other_of_group(original, random_numbers)
        return found or like(original, random_numbers.choice(["Monday", "Tuesday", "Thursday", "Friday"]))
    if label == "IDENTIFIER":
        return other_characters(original, random_numbers, letters=True)
    if any(map(str.isdigit, original)):
        return _other_figures(original, random_numbers)
    found = other_of_group(original, random_numbers)
    return found or like(original, random_numbers.choice("two three four five six seven eight nine".split()))


def figure_by_class(label: str, random_numbers: random.Random, index: int, count: int) -> str:
    """The same without an original: word ``index`` of ``count`` that stand side by side."""
    if label == "DATE":
        year = str(random_numbers.randint(1990, 2025))
        month = random_numbers.choice("January March April May June July September October".split())
        if count == 1:
            return random_numbers.choice([year, month, "Monday", "Friday", "Sunday"])
        return (month, str(random_numbers.randint(1, 28)), year)[min(index, 2)]
    if label == "IDENTIFIER":
        return other_characters("A1000000", random_numbers, letters=True)
    if index and label == "MONEY":
        return "dollars" if index == count - 1 else random_numbers.choice(["hundred", "thousand", "million"])
    if index:
        return random_numbers.choice(["hundred", "thousand", "million"])
    return str(random_numbers.randint(2, 60)) if count == 1 else str(random_numbers.randint(2, 9))
