"""Formats of dates, times, sums, telephone numbers, cards, accounts and identity papers."""

import random
import string
from collections.abc import Mapping
from datetime import date, timedelta

MONTHS = ("January February March April May June July August September October November December").split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DIGIT_WORDS = "zero one two three four five six seven eight nine".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty".split()
PATTERNS: Mapping[str, tuple[str, ...]] = {
    "PHONE_NUMBER": (
        "(###) ###-####", "###-###-####", "###.###.####", "+1 ### ### ####", "1-###-###-####", "+1-###-###-####x###",
        "+44 20 #### ####", "020 #### ####", "07### ######", "+44 7### ######", "0#### ######", "+49 30 #######",
        "0### / ######", "+49 (0)### #######", "+33 # ## ## ## ##", "0# ## ## ## ##", "+39 ### #######",
        "+34 ### ### ###", "+91 #####-#####", "(0#) #### ####", "+61 4## ### ###", "###-####", "##########",
        "00## ## ### ## ##", "+48 ### ### ###",
    ),
    "SOCIAL_SECURITY_NUMBER": (
        "###-##-####", "###-##-####", "#########", "@@######C", "@@ ## ## ## A", "### ## ####",
    ),
    "PASSPORT_NUMBER": ("#########", "@########", "@@#######", "@@@######", "@##@#####"),
    "DRIVING_LICENCE": ("@#######", "@###-####-####", "@@@@@######@@#@@", "@@######", "########", "@########"),
    "LICENCE_PLATE": (
        "@@## @@@", "#@@@###", "@@@-####", "@-@@ ###", "@@-@@ ####", "@@-###-@@", "@@@ ###", "##-@@@-#", "@@@####",
    ),
    "ACCOUNT_NUMBER": ("########", "##########", "######-####", "#### #### ##", "############", "##-##-## ########"),
    "ORDER_NUMBER": (
        "#######", "@@-######", "###-#######-#######", "@@@#####", "#####", "@@####-##", "INV-####", "TCK-#####",
        "@######",
    ),
}  # fmt: skip
"""Patterns of digits and letters in the forms of several countries, by the label of their slot."""


def pattern(form: str, random_numbers: random.Random) -> str:
    """Fill ``#`` with a digit and ``@`` with a capital letter; the first digit is never 0."""
    filled = []
    first = True
    for character in form:
        if character == "#":
            filled.append(random_numbers.choice("123456789" if first else string.digits))
            first = False
        else:
            filled.append(random_numbers.choice("ABCDEFGHJKLMNPRSTUVWXYZ") if character == "@" else character)
    return "".join(filled)


def day(random_numbers: random.Random, first_year: int = 1990, last_year: int = 2026) -> date:
    """A day of a random year."""
    start = date(first_year, 1, 1)
    return start + timedelta(days=random_numbers.randrange((date(last_year, 12, 31) - start).days + 1))


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def calendar_date(random_numbers: random.Random, first_year: int = 1990, last_year: int = 2026) -> str:
    """A day, in figures or with the month in words."""
    chosen = day(random_numbers, first_year, last_year)
    month, number, year = MONTHS[chosen.month - 1], chosen.day, chosen.year
    return random_numbers.choice(
        [f"{month} {number}, {year}", f"{number} {month} {year}", f"{month} {_ordinal(number)}", f"{number} {month}",
         f"{month} {number}", f"the {_ordinal(number)} of {month}", chosen.isoformat(), f"{chosen:%m/%d/%Y}",
         f"{chosen:%d/%m/%Y}", f"{chosen:%d.%m.%Y}", f"{chosen.month}/{chosen.day}/{year % 100:02d}",
         f"{month[:3]} {number}, {year}", f"{number}-{month[:3]}-{year}", f"{_ordinal(number)} {month[:3]} {year}",
         f"{month} {year}"]
    )  # fmt: skip


def when(random_numbers: random.Random) -> str:
    """A day that follows no preposition: "tomorrow", "next Tuesday", "last summer"."""
    weekday = random_numbers.choice(WEEKDAYS)
    return random_numbers.choice(
        ["today", "tomorrow", "yesterday", "tonight", "this morning", "last night", "this weekend", "next week",
         "last month", "next year", "last summer", f"next {weekday}", f"last {weekday}", f"this {weekday}",
         f"{weekday} morning", f"{weekday} night", "two weeks ago", "a few days ago", "this afternoon"]
    )  # fmt: skip


def year(random_numbers: random.Random) -> str:
    """A year; decades are rarer."""
    if random_numbers.random() < 0.1:
        return f"the {random_numbers.choice(['1950s', '60s', '1970s', '80s', '1990s', '2000s'])}"
    return str(random_numbers.randint(1920, 2027))


def time_of_day(random_numbers: random.Random) -> str:
    """A clock time."""
    hour, minute = random_numbers.randint(1, 12), random_numbers.choice([0, 5, 10, 15, 20, 30, 40, 45, 50])
    return random_numbers.choice(
        [f"{hour} pm", f"{hour}am", f"{hour}:{minute:02d} PM", f"{hour}:{minute:02d}", f"{hour + 11}:{minute:02d}",
         f"{hour} o'clock", f"{hour}.{minute:02d} a.m.", "noon", "midnight",
         f"half past {_DIGIT_WORDS[hour % 9 + 1]}"]
    )  # fmt: skip


def spoken_year(random_numbers: random.Random) -> str:
    """A year in words."""
    if random_numbers.random() < 0.3:
        return f"two thousand and {random_numbers.choice(_DIGIT_WORDS[1:])}"
    return f"nineteen {random_numbers.choice(_TENS)} {random_numbers.choice(_DIGIT_WORDS[1:])}"


def age(random_numbers: random.Random) -> str:
    """An age in years, a bare number."""
    return str(min(99, max(1, round(random_numbers.gauss(38, 20)))))


def money(random_numbers: random.Random) -> str:
    """A sum with its currency."""
    small = random_numbers.randint(2, 990)
    large = random_numbers.choice([1_200, 2_500, 8_750, 15_000, 42_300, 100_000, 350_000, 1_000_000])
    symbol = random_numbers.choice("$$$£€€")
    return random_numbers.choice(
        [f"{symbol}{small}", f"{symbol}{large:,}", f"{symbol}{small}.{random_numbers.randint(1, 99):02d}",
         f"{small} dollars", f"{small} euros", f"{large:,} USD", f"EUR {large:,}",
         f"{symbol}{random_numbers.randint(1, 90)} million",
         f"{symbol}{random_numbers.randint(2, 900)}k", f"{small} bucks",
         f"{symbol}{random_numbers.randint(1, 40)}.{random_numbers.randint(1, 9)} billion",
         f"{symbol} {small}",
         " ".join(map(random_numbers.choice, (("five", "ten", "twenty", "fifty"), ("bucks", "dollars", "pounds"))))]
    )  # fmt: skip


def spoken_digits(random_numbers: random.Random, count: int | None = None) -> str:
    """Digits as they are spoken: "five five oh one double seven"."""
    count = count or random_numbers.choice([7, 10, 11])
    words: list[str] = []
    while count > 0:
        digit = random_numbers.randrange(10)
        word = random_numbers.choice(["oh", "zero"]) if digit == 0 else _DIGIT_WORDS[digit]
        if count >= 2 and random_numbers.random() < 0.08:
            words += ["double", word]
            count -= 2
        else:
            words.append(word)
            count -= 1
    return " ".join(words)


def card_number(random_numbers: random.Random) -> str:
    """The number of a payment card with a right check digit (Luhn), whole or in groups."""
    start = random_numbers.choice(["4", "4", "51", "52", "53", "55", "34", "37", "6011", "2221"])
    length = 15 if start in ("34", "37") else 16
    digits = [int(digit) for digit in start]
    digits += [random_numbers.randrange(10) for _ in range(length - 1 - len(digits))]
    total = sum(digit if place % 2 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(reversed(digits)))
    number = "".join(map(str, [*digits, -total % 10]))
    separator = random_numbers.choice(["", "", " ", "-"])
    if length == 15:
        return separator.join([number[:4], number[4:10], number[10:]])
    return separator.join(number[start : start + 4] for start in range(0, 16, 4))


def iban(random_numbers: random.Random) -> str:
    """An international account number with right check digits (ISO 13616), whole or in groups of four."""
    country, form = random_numbers.choice(
        [("DE", "##################"), ("GB", "@@@@##############"), ("FR", "#######################"),
         ("ES", "####################"), ("NL", "@@@@##########"), ("IT", "@######################"),
         ("AT", "################"), ("CH", "#################"), ("PL", "########################"), ("BE",
         "############")]
    )  # fmt: skip
    account = pattern(form, random_numbers)
    value = int("".join(str(int(character, 36)) for character in account + country + "00"))
    number = f"{country}{98 - value % 97:02d}{account}"
    if random_numbers.random() < 0.5:
        return number
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


def ip_address(random_numbers: random.Random) -> str:
    """An IP address of version 4, rarely 6."""
    if random_numbers.random() < 0.2:
        return ":".join(f"{random_numbers.randrange(1, 65536):x}" for _ in range(8))
    return ".".join(str(random_numbers.randint(1, 254)) for _ in range(4))


def count(random_numbers: random.Random) -> str:
    """An ordinary number that identifies nobody."""
    return random_numbers.choice(
        [str(random_numbers.randint(2, 12)), str(random_numbers.randint(10, 60)),
         random_numbers.choice(_DIGIT_WORDS[2:]),
         str(random_numbers.choice([100, 150, 200, 300, 500])),
         f"{random_numbers.randint(1, 20)},{random_numbers.randint(100, 999)}"]
    )  # fmt: skip


def percentage(random_numbers: random.Random) -> str:
    """A percentage."""
    number = random_numbers.randint(1, 99)
    return random_numbers.choice(
        [f"{number}%", f"{number} %", f"{number} percent", f"{number}.{random_numbers.randint(1, 9)}%"]
    )
