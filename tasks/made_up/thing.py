"""Made-up values in the forms of ``values/forms.txt``.

A form is text with parts in braces. A part is another kind of value, a word, or a part of one person, country or day.
Parts of one ``Thing`` agree: name, pronouns and addresses are of one person, and a nationality is of its country.
"""

import random
import re
from datetime import date
from functools import cache
from typing import Any

from faker import Factory, Generator

from tasks.made_up.made_up import MadeUp
from tasks.made_up.pools import LOCALE_WEIGHTS, Pool, shipped_values, states, without_article
from tasks.made_up.writing import ascii_letters, grouped, ordinal_ending, plain, written

_TABLES = {
    "nationalities": ("country", "nationality", "nationality_people", "nationality_person"),
    "beliefs": ("belief", "belief_people", "belief_person"),
}
"""Parts in the columns of a list."""
_CARDS = ("visa16", "mastercard", "amex", "discover")
_RANGE = re.compile(r"(\d+)-(\d+)")
_LOCALES = Pool(LOCALE_WEIGHTS)


class Thing(dict[str, Any]):
    """One person, country, organisation or value; its parts are drawn at their first use."""

    def __init__(self, made_up: MadeUp, random_numbers: random.Random, female: bool | None = None) -> None:
        """``female``: gender of a person; ``None`` to draw it."""
        super().__init__()
        self._made_up, self._random_numbers = made_up, random_numbers
        self["female"] = random_numbers.random() < 0.5 if female is None else female

    def make(self, kind: str) -> str:
        """A value of a kind: a key of ``values/forms.txt`` or ``words.txt``, or a part such as ``city``."""
        if kind not in self._made_up.forms:
            return str(self[kind])
        form = self._made_up.forms[kind].draw(self._random_numbers)
        return written(form, self._random_numbers).format_map(self)

    def __missing__(self, key: str) -> Any:  # noqa: ANN401
        choice = self._random_numbers.choice
        if numbers := _RANGE.fullmatch(key):
            return self._random_numbers.randint(*map(int, numbers.groups()))
        if "|" in key:
            return choice(key.split("|"))
        if "/" in key:
            return key.split("/")[0 if self["female"] else 1]
        if key[0].isupper():
            return self[key.lower()].title()
        if key in self._made_up.forms:
            return self.make(key)
        if key in ("first", "middle", "last"):
            return self._draw_person(key)
        if key in ("plain_first", "plain_last"):
            return plain(self[key.removeprefix("plain_")])
        if key in ("state", "state_code"):
            self["state"], self["state_code"] = choice(states())
            return self[key]
        if key.startswith("listed_"):
            return self._made_up.listed(key.removeprefix("listed_")).draw(self._random_numbers)
        if key.startswith("fake_"):
            return self._faker().format(key.removeprefix("fake_"))
        for table, columns in _TABLES.items():
            if key in columns:
                self.update(zip(columns, choice(shipped_values(table)), strict=True))
                return self[key]
        return getattr(self, f"_{key}")()

    def _draw_person(self, key: str) -> str:
        """A part of the person's name; both names are usually of one language."""
        locale = _LOCALES.draw(self._random_numbers)
        first = self._made_up.first[locale, self["female"]]
        if self._random_numbers.random() >= 0.9:
            locale = _LOCALES.draw(self._random_numbers)
        self["first"], self["middle"] = (first.draw(self._random_numbers) for _ in range(2))
        self["last"] = self._made_up.last[locale, self["female"]].draw(self._random_numbers)
        return str(self[key])

    def _given(self) -> str:
        """The first name of another person."""
        return str(Thing(self._made_up, self._random_numbers)["first"])

    def _surname(self) -> str:
        """A last name for companies, streets and schools."""
        locale = "en_US" if self._random_numbers.random() < 0.6 else _LOCALES.draw(self._random_numbers)
        return self._made_up.last[locale, False].draw(self._random_numbers)

    def _plural_last(self) -> str:
        last = str(self["last"])
        return last + ("es" if last.endswith(("s", "x", "z", "ch", "sh")) else "s")

    def _nickname(self) -> str:
        first, endings = str(self["first"]), ["", "ie", "y", "o"]
        known = {row[0]: row[1] for row in shipped_values("nicknames")}
        if first in known:
            return known[first]
        stem = first[: 3 if first[3:4] in "aeiou" else 4]
        return stem + self._random_numbers.choice(endings) if len(first) > 5 and stem.isalpha() else first

    def _country_alone(self) -> str:
        return without_article(self["country"])

    def _joined_street_name(self) -> str:
        """A name inside a word, which has no space: "Da-Silva-straße"."""
        return str(self["street_name"]).replace(" ", "-")

    def _web_host(self) -> str:
        """Letters, figures and hyphens of a company's name, and an ending."""
        name = ascii_letters(self.make("company")).lower()
        name = re.sub(r"[^a-z0-9]+", self._random_numbers.choice(["", "-"]), name).strip("-") or "site"
        return name[:24].strip("-") + self["host_end"]

    def _day(self) -> date:
        return self.setdefault("day", self._between(1990, 2026))

    def _birth(self) -> date:
        return self.setdefault("birth", self._between(1935, 2012))

    def _between(self, first_year: int, last_year: int) -> date:
        first, last = date(first_year, 1, 1).toordinal(), date(last_year, 12, 31).toordinal()
        return date.fromordinal(self._random_numbers.randint(first, last))

    def _ordinal(self) -> str:
        number = str(self["day"].day)
        return number + ordinal_ending(number)

    def _card(self) -> str:
        """The number of a payment card with a right check digit (Luhn), whole or in groups."""
        number = str(self._faker().format("credit_card_number", self._random_numbers.choice(_CARDS)))
        lengths = (4, 6, 5) if len(number) == 15 else (4, 4, 4, 4)
        return grouped(number, lengths, self._random_numbers.choice(["", "", " ", "-"]))

    def _account(self) -> str:
        """An international account number with right check digits (ISO 13616), whole or in groups of four."""
        return grouped(self["fake_iban"], (4,) * 8, self._random_numbers.choice(["", " "]))

    def _faker(self) -> Generator:
        """Faker's providers of a random locale."""
        generator = _generator(_LOCALES.draw(self._random_numbers))
        generator.random = self._random_numbers
        return generator


@cache
def _generator(locale: str) -> Generator:
    return Factory.create(locale)
