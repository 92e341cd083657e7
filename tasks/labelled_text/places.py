"""Places: countries with their people, cities, states, streets, buildings."""

import random
import re
from dataclasses import dataclass

from tasks.corpora.sources.document import Part
from tasks.labelled_text.number_formats import pattern
from tasks.labelled_text.people import People
from tasks.labelled_text.value_pools import cities, divided_pool, shipped_groups, shipped_values, states

_HOUSES_FIRST = ("", "", "", "", "Apt. # ", "Suite ## ", "Unit # ", "Flat # ")
_ZIP_CODES = (
    "#####", "#####", "#####", "#####-####", "@## #@@", "@@# #@@", "@# #@@", "@#@ #@#", "####", "#### @@", "##-###",
)  # fmt: skip
_SHORT_PLACES = (
    "NYC",
    "LA",
    "SF",
    "DC",
    "Philly",
    "Vegas",
    "St. Louis",
    "St. Paul",
    "Washington, D.C.",
    "New York",
    "Hong Kong",
)


@dataclass(frozen=True, slots=True)
class Country:
    """A country and the words for its people: Spain, Spanish, Spaniards, Spaniard."""

    name: str
    adjective: str
    people: str
    person: str


class Places:
    """Places of one part of the generated text."""

    def __init__(self, part: Part, reserved_share: float, people: People) -> None:
        self._people = people
        self._cities = divided_pool(cities(), part, reserved_share)
        # Regions, rivers, mountains, seas, islands and quarters.
        self.regions = divided_pool({name: 1.0 for (name,) in shipped_values("regions")}, part, reserved_share)
        # Well-known ones occur more often.
        self.countries = [Country(*row) for row in shipped_values("nationalities")]
        self.states = states()
        self._forms = shipped_groups("name_forms")
        self._facilities = [name for (name,) in shipped_values("facilities")]
        self._street_words = [word for (word,) in shipped_values("street_words")]

    def city(self, random_numbers: random.Random) -> str:
        """A city, rarely by its short name."""
        if random_numbers.random() < 0.04:
            return random_numbers.choice(_SHORT_PLACES)
        return self._cities.draw(random_numbers)

    def facility(self, random_numbers: random.Random) -> str:
        """A building, station, airport, square or road."""
        if random_numbers.random() < 0.3:
            return random_numbers.choice(self._facilities)
        return random_numbers.choice(self._forms["facility"]).format(
            city=self._cities.draw(random_numbers), last=self._people.last_name(random_numbers)
        )

    def street(self, random_numbers: random.Random) -> str:
        """The name of a street."""
        named = random_numbers.random() < 0.45
        name = random_numbers.choice(self._street_words) if named else self._people.last_name(random_numbers)
        form = random_numbers.choice(self._forms["street"])
        # A name inside a word has no space: "Da-Silva-straße".
        return form.format(name=name.replace(" ", "-") if re.match(r"\{name\}\w", form) else name)

    def street_address(self, random_numbers: random.Random) -> str:
        """House and street, in the order of some country."""
        street = self.street(random_numbers)
        number = pattern(random_numbers.choice(["#", "##", "##", "###", "####"]), random_numbers)
        if random_numbers.random() < 0.1:
            number += random_numbers.choice("abcABC")
        # If the street's kind comes first, or is part of the name, the house number follows.
        behind = street[0].islower() or street.split()[0] in ("Rua", "Via", "Piazza", "Calle")
        if behind or street.endswith(("straße", "weg", "gasse", "straat", "vägen")):
            return f"{street} {number}"
        flat = pattern(random_numbers.choice(_HOUSES_FIRST), random_numbers).strip()
        if flat.startswith(("Apt", "Suite", "Unit")):
            return f"{number} {street}, {flat}" if random_numbers.random() < 0.7 else f"{number} {street} {flat}"
        return f"{flat}, {number} {street}" if flat else f"{number} {street}"

    def zip_code(self, random_numbers: random.Random) -> str:
        """A postal code."""
        return pattern(random_numbers.choice(_ZIP_CODES), random_numbers)

    def full_address(self, random_numbers: random.Random) -> str:
        """Street, city, code and perhaps country, on one line or several."""
        street, city = self.street_address(random_numbers), self._cities.draw(random_numbers)
        code = self.zip_code(random_numbers)
        form = random_numbers.choice(
            [f"{street}, {city}, {random_numbers.choice(self.states)[1]} {code}", f"{street}, {city} {code}",
             f"{street}, {code} {city}", f"{street}\n{code} {city}", f"{street}, {city}"]
        )  # fmt: skip
        country = random_numbers.choice(self.countries).name.removeprefix("the ")
        return f"{form}, {country}" if random_numbers.random() < 0.2 else form
