"""Organisations, works, products and events.

Many organisations contain the name of a person or a city; the whole name is one value and has one label.
"""

import random
import re
import unicodedata
from collections.abc import Mapping, Sequence

from tasks.corpora.sources.document import Part
from tasks.labelled_text.people import People
from tasks.labelled_text.places import Places
from tasks.labelled_text.value_pools import Pool, divided_pool, shipped_groups, shipped_values

_KNOWN = {
    "company": ("companies", 0.4),
    "agency": ("agencies", 0.7),
    "team": ("teams", 0.6),
    "band": ("bands", 0.55),
    "work": ("works", 0.5),
    "product": ("products", 0.7),
    "event": ("events", 0.5),
}
"""Share of values from this package's list, by kind; all others are made up."""
_HOST_ENDS = (".com", ".com", ".org", ".net", ".co.uk", ".de", ".io", ".fr")
_PATHS = ("", "/", "/about", "/news/2024", "/index.html", "/shop?id=12", "/blog/how-to")
_SHORT_HOSTS = ("http://bit.ly/", "https://t.co/", "http://tinyurl.com/", "http://youtu.be/", "http://fb.me/")
_SHORT_CODE = "abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPRSTUVWXYZ23456789"


class Organisations:
    """Organisations, works, products and events of one part of the generated text."""

    def __init__(self, part: Part, reserved_share: float, people: People, places: Places) -> None:
        self._people, self._places = people, places
        self._known: Mapping[str, Pool] = {
            name: divided_pool({row[0]: 1.0 for row in shipped_values(name)}, part, reserved_share)
            for name, _ in _KNOWN.values()
        }
        self._forms = shipped_groups("name_forms")
        self._words = shipped_groups("made_up_words")
        self.beliefs = shipped_values("beliefs")

    def make(self, kind: str, random_numbers: random.Random) -> str:
        """One of a kind in ``name_forms``, known or made up: ``company``, ``school``, ``band`` and so on."""
        known, share = _KNOWN.get(kind, ("", 0.0))
        if known and random_numbers.random() < share:
            return self._known[known].draw(random_numbers)
        form = random_numbers.choice(self._forms[kind])
        return form.format_map(_Parts(self._people, self._places, self._words, random_numbers))

    def work(self, random_numbers: random.Random) -> str:
        """A film, series, song, book or game."""
        return self.make("work", random_numbers)

    def product(self, random_numbers: random.Random) -> str:
        """The name of a product."""
        return self.make("product", random_numbers)

    def event(self, random_numbers: random.Random) -> str:
        """The name of an event."""
        return self.make("event", random_numbers)

    def any(self, random_numbers: random.Random) -> str:
        """Any organisation, usually a company."""
        kinds = ("company", "agency", "university", "press", "shop")
        return self.make(random_numbers.choices(kinds, weights=(5, 2, 1, 1, 1))[0], random_numbers)

    def web_host(self, random_numbers: random.Random) -> str:
        """The host name of an organisation: letters and hyphens, and an ending."""
        name = (
            unicodedata.normalize("NFD", self.make("company", random_numbers))
            .encode("ascii", "ignore")
            .decode()
            .lower()
        )
        name = re.sub(r"[^a-z0-9]+", random_numbers.choice(["", "-"]), name).strip("-") or "site"
        return name[:24].strip("-") + random_numbers.choice(_HOST_ENDS)

    def url(self, random_numbers: random.Random) -> str:
        """A web address: whole, short or without its scheme."""
        code = "".join(random_numbers.choices(_SHORT_CODE, k=random_numbers.randint(6, 10)))
        host = self.web_host(random_numbers)
        path = random_numbers.choice([*_PATHS, f"/p/{code}"])
        short = random_numbers.choice(_SHORT_HOSTS) + code
        return random_numbers.choice(
            [f"http://www.{host}{path}", f"https://{host}{path}", f"www.{host}", host, short, short]
        )


class _Parts(dict):
    """Parts of made-up names, drawn on first use."""

    def __init__(
        self, people: People, places: Places, words: Mapping[str, Sequence[str]], random_numbers: random.Random
    ) -> None:
        super().__init__()
        self._people, self._places, self._words, self._random_numbers = people, places, words, random_numbers

    def __missing__(self, key: str) -> str:
        choice = self._random_numbers.choice
        match key:
            case "last" | "other" | "third":
                return self._people.last_name(self._random_numbers)
            case "first":
                return self._people.draw(self._random_numbers).first
            case "city":
                return self._places.city(self._random_numbers)
            case "coined":
                middle = choice(self._words["middle"]) if self._random_numbers.random() < 0.8 else ""
                return choice(self._words["start"]) + middle + choice(self._words["end"])
            case "acronym":
                return "".join(self._random_numbers.choices("ABCDEFGHIKLMNPRST", k=choice([3, 3, 4])))
            case "number":
                return str(self._random_numbers.randint(2, 12))
            case "noun2":
                return choice(self._words["noun"])
        return choice(self._words[key])
