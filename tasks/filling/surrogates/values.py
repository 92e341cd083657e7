"""Values of surrogates: names of people by gender, of places and organisations by kind and number of words.

The pools come from the labelled text (``tasks.labelled_text``): faker's names, cities, and lists of this package.
"""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from tasks.corpora.words import fold, word_spans
from tasks.filling.surrogates.figures import other_characters
from tasks.filling.surrogates.groups import group_of, no_list
from tasks.labelled_text import people as names
from tasks.labelled_text.slots import Gazetteer
from tasks.labelled_text.value_pools import (
    LOCALE_WEIGHTS,
    Pool,
    cities,
    first_names,
    last_names,
    shipped_values,
    states,
)

_ATTEMPTS = 60
_FEWEST_PLACES = 8
_SURE = 0.8
"""Minimum share of one gender among the bearers of a first name of this gender."""
_FEMALE_WORDS = {pair[0] for pair in names.PRONOUNS.values()} | {"hers", "mrs", "ms", "miss"}
_MALE_WORDS = {pair[1] for pair in names.PRONOUNS.values()} | {"mr"}
_PLACE_ENDINGS = (
    ("Street", "Avenue", "Road", "Lane", "Drive", "Boulevard"),
    ("St", "Ave", "Rd", "Ln", "Dr", "Blvd"),
    ("River", "Lake", "Bay", "Creek", "Gulf", "Canal", "Sea"),
    ("County", "District", "Province", "Region", "Parish", "Borough"),
    ("Island", "Valley", "Beach", "Forest", "Cape", "Peninsula", "Mountain"),
    ("Islands", "Mountains", "Hills", "Springs", "Falls", "Highlands"),
    ("Airport", "Station", "Bridge", "Park", "Square", "Hotel"),
)
_ORGANISATION_ENDINGS = (
    ("Inc", "Corp", "Ltd", "LLC", "Co", "PLC", "GmbH", "AG"),
    ("Company", "Group", "Partners", "Holdings", "Corporation", "Industries", "Brothers"),
    ("Systems", "Technologies", "Labs", "Solutions", "Software"),
    ("University", "College", "Institute", "Academy", "School"),
    ("Bank", "Trust", "Fund", "Capital", "Insurance", "Savings"),
    ("Hospital", "Clinic", "Infirmary", "Hospice", "Surgery"),
    ("Times", "Post", "Herald", "Journal", "News", "Tribune", "Gazette"),
    ("Department", "Ministry", "Agency", "Committee", "Commission", "Council", "Bureau"),
)
_ENDING_SHARE = 0.3
"""Share of freely drawn organisations of several words that end with a word of these groups. Without them, such an
ending would reveal that the original has one of the same group."""
_SHORT_PLACES = ("US", "UK", "EU", "USA", "UAE", "NYC", "LA", "DC", "SF")
_SHORT_NAME = re.compile(r"[A-Z]{2,5}")
_SHORT_FOLDED = re.compile(r"[a-z]{2,3}")
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_TELEPHONE_ASKED = re.compile(r"\b(?:call|phone|tel|telephone|text|mobile|cell|fax|number)\b[^.]*$", re.IGNORECASE)


def is_one_word(text: str) -> bool:
    """Whether a text is exactly one word, as a fill must be."""
    return word_spans(text) == [(0, len(text))]


def gender_of_text(texts: Iterable[str]) -> bool | None:
    """Whether the pronouns and forms of address of a text are female; ``None`` for both genders or neither."""
    words = {fold(word) for text in texts for word in re.findall(r"[^\W\d_]+", text)}
    female, male = bool(words & _FEMALE_WORDS), bool(words & _MALE_WORDS)
    return None if female == male else female


class SurrogateValues:
    """Draws values by class; each pool is made at its first use."""

    @cached_property
    def _gazetteer(self) -> Gazetteer:
        return Gazetteer("train", 0.0)

    @cached_property
    def _first_names(self) -> Mapping[str, tuple[float, float]]:
        """From folded first name to its frequencies among women and men."""
        found: dict[str, list[float]] = {}
        for column, female in enumerate((True, False)):
            for name, weight in _weighted(lambda locale, female=female: first_names(locale, female=female)).items():  # type: ignore[misc]
                found.setdefault(name, [0.0, 0.0])[column] += weight
        return {name: (weights[0], weights[1]) for name, weights in found.items()}

    @cached_property
    def _last_names(self) -> Mapping[str, float]:
        return _weighted(lambda locale: last_names(locale, female=False))

    @cached_property
    def _places(self) -> Mapping[str, Mapping[int, Pool]]:
        """From kind of place to its names by number of words."""
        countries = [row[0].removeprefix("the ") for row in shipped_values("nationalities")]
        kinds = {
            "country": dict.fromkeys(countries, 1.0),
            "state": dict.fromkeys((name for name, _ in states()), 1.0),
            "code": dict.fromkeys((code for _, code in states()), 1.0),
            "region": {row[0].removeprefix("the "): 1.0 for row in shipped_values("regions")},
            "city": cities(),
        }
        return {kind: _by_words(values) for kind, values in kinds.items()}

    def _pool_of_places(self, kind: str, count: int) -> Pool | None:
        """Places of a kind with ``count`` words. A kind with very few such places would reveal the original (the Isle
        of Skye, the Gulf of Mexico), so cities replace it."""
        pools = (self._places[name].get(count) for name in (kind, "city"))
        return next((pool for pool in pools if pool is not None and len(pool.values) >= _FEWEST_PLACES), None)

    @cached_property
    def _kinds_of_place(self) -> Mapping[str, str]:
        """From folded name to kind; a name of several kinds has the best known one."""
        kinds: dict[str, str] = {}
        for kind in ("city", "region", "state", "country"):
            kinds |= {fold(name): kind for pool in self._places[kind].values() for name in pool.values}
        return kinds

    @cached_property
    def _peoples(self) -> tuple[tuple[str, ...], ...]:
        """Groups of words that replace each other: nationalities, peoples and persons, beliefs and believers."""
        nations, beliefs = shipped_values("nationalities"), shipped_values("beliefs")
        columns = [[row[column] for row in nations] for column in (1, 2, 3)]
        columns += [[row[column] for row in beliefs] for column in (0, 1, 2)]
        return tuple(tuple(dict.fromkeys(filter(is_one_word, column))) for column in columns)

    def words_of_class(self, label: str) -> list[str]:
        """All values of a class that are one word; empty for a class without a pool."""
        match label:
            case "PERSON":
                return [*self._first_names, *self._last_names]
            case "LOCATION":
                return [name for pools in self._places.values() for name in pools[1].values if len(name) > 2]
            case "GROUP":
                return [word for group in self._peoples for word in group]
            case "ORGANISATION" | "WORK" | "MISCELLANEOUS":
                lists = {"ORGANISATION": ("companies", "agencies", "teams", "bands"), "WORK": ("works",)}
                rows = [row for name in lists.get(label, ("products", "events")) for row in shipped_values(name)]
                return [row[0] for row in rows if is_one_word(row[0])]
        return []

    def gender_of_name(self, name: str) -> bool | None:
        """Whether a first name is a woman's; ``None`` for an unknown name and for names of both genders."""
        female, male = self._first_names.get(fold(name), (0.0, 0.0))
        if female + male == 0:
            return None
        share = female / (female + male)
        return True if share >= _SURE else False if share <= 1 - _SURE else None

    def is_last_name(self, name: str) -> bool | None:
        """Whether a word is a last name rather than a first name; ``None`` if it is unknown."""
        first, last = sum(self._first_names.get(fold(name), (0.0, 0.0))), self._last_names.get(fold(name), 0.0)
        return None if first == last == 0 else last > first

    def first_name(self, random_numbers: random.Random, female: bool | None) -> str:
        """A first name of one word."""
        return _one_word(lambda: self._gazetteer.people.draw(random_numbers, female).first)

    def last_name(self, random_numbers: random.Random) -> str:
        """A last name of one word."""
        return _one_word(lambda: self._gazetteer.people.last_name(random_numbers))

    def place(
        self,
        random_numbers: random.Random,
        originals: list[str],
        count: int,
        *,
        cased: bool = True,
        on_list: Callable[[str], bool] = no_list,
    ) -> list[str]:
        """A place of ``count`` words, of the kind of the original if there is one. Without ``cased``, originals are
        folded; one of two or three letters is a short name unless it is a known long one (Rio)."""
        if count == 1 and originals:
            word = originals[0]
            if word.upper() in self._places["code"][1].values and (word.isupper() or not cased):
                return [self._places["code"][1].draw(random_numbers)]
            short = bool(_SHORT_NAME.fullmatch(word)) and len(word) < 4
            if not cased:
                known = word in self._kinds_of_place and word.upper() not in _SHORT_PLACES
                short = not known and bool(_SHORT_FOLDED.fullmatch(word))
            if short:
                return [random_numbers.choice(_SHORT_PLACES)]
            if _DOTTED.fullmatch(word):
                return [".".join(random_numbers.choice(_SHORT_PLACES[:5]))]
        kind = self._kinds_of_place.get(fold(" ".join(originals).removeprefix("the ")), "city")
        pool = self._pool_of_places(kind, count)
        return self._several(
            lambda: pool.draw(random_numbers) if pool is not None else None,
            group_of(originals[-1], _PLACE_ENDINGS, on_list) if len(originals) == count else [],
            originals,
            count,
            random_numbers,
            lambda: self._places["city"][1].draw(random_numbers),
        )

    def organisation(
        self,
        random_numbers: random.Random,
        originals: list[str],
        count: int,
        *,
        cased: bool = True,
        on_list: Callable[[str], bool] = no_list,
    ) -> list[str]:
        """An organisation of ``count`` words. A short name in capitals becomes another one. Without ``cased``,
        originals are folded, and a name of two or three letters counts as short."""
        if count == 1 and originals and (_SHORT_NAME if cased else _SHORT_FOLDED).fullmatch(originals[0]):
            return [other_characters(originals[0], random_numbers, letters=True)]
        endings = group_of(originals[-1], _ORGANISATION_ENDINGS, on_list) if len(originals) == count else []
        if not endings and count > 1 and random_numbers.random() < _ENDING_SHARE:
            endings = [*random_numbers.choice(_ORGANISATION_ENDINGS)]
        return self._several(
            lambda: self._gazetteer.organisations.any(random_numbers),
            endings,
            originals,
            count,
            random_numbers,
            lambda: self.last_name(random_numbers),
        )

    def named_thing(self, random_numbers: random.Random, label: str, originals: list[str], count: int) -> list[str]:
        """A work, product or event of ``count`` words."""
        made = self._gazetteer.organisations

        def draw() -> str:
            if label == "WORK":
                return made.work(random_numbers)
            # Each attempt draws the kind again: few products have three words, so one would reveal another.
            return (made.product if random_numbers.random() < 0.7 else made.event)(random_numbers)

        return self._several(draw, [], originals, count, random_numbers, lambda: self.last_name(random_numbers))

    def people_of(self, random_numbers: random.Random, original: str | None) -> str:
        """A nationality, people or belief; of the original's kind if there is an original."""
        if original is not None:
            for group in self._peoples:
                if fold(original) in map(fold, group):
                    return random_numbers.choice(group)
        return random_numbers.choice(self._peoples[1 if original is not None and original.endswith("s") else 0])

    def contact(self, random_numbers: random.Random, original: str | None, before: str) -> str:
        """An address, number, link or handle in the form of the original, else by the text before it."""
        people, organisations = self._gazetteer.people, self._gazetteer.organisations
        person = people.draw(random_numbers)
        if original is None:
            if _TELEPHONE_ASKED.search(before):
                return other_characters("555-0100", random_numbers, letters=False)
            return names.email_address(person, random_numbers)
        if original.startswith("@"):
            return "@" + names.user_name(person, random_numbers)
        if original.startswith("#"):
            return "#" + names.user_name(person, random_numbers).strip("_")
        if "@" in original:
            return names.email_address(person, random_numbers)
        if "/" in original or ("." in original and any(map(str.isalpha, original))):
            start = re.match(r"(?:https?://)?(?:www\.)?", original, re.IGNORECASE)
            host = organisations.web_host(random_numbers)
            path = "/" + names.user_name(person, random_numbers) if "/" in original.split("://")[-1] else ""
            return f"{start.group() if start else ''}{host}{path}"
        if any(map(str.isalpha, original)):
            return names.user_name(person, random_numbers).strip("_")
        return other_characters(original, random_numbers, letters=False)

    def _several(
        self,
        draw: Callable[[], str | None],
        endings: Sequence[str],
        originals: list[str],
        count: int,
        random_numbers: random.Random,
        word: Callable[[], str],
    ) -> list[str]:
        """A value of ``count`` words. If none is drawn, or ``endings`` show its kind (Street, Inc), it is composed of
        single words."""
        if not endings and not any(character.isdigit() for original in originals for character in original):
            for _ in range(_ATTEMPTS):
                parts = (draw() or "").removeprefix("the ").split()
                if len(parts) == count and all(map(_is_plain_word, parts)):
                    return parts
        made = []
        for index in range(count):
            original = originals[index] if index < len(originals) else ""
            if endings and index == count - 1:
                made.append(random_numbers.choice(endings))
            elif any(map(str.isdigit, original)):
                made.append(other_characters(original, random_numbers, letters=True))
            else:
                made.append(_one_word(word))
        return made


def _is_plain_word(text: str) -> bool:
    """Whether a text is a word of ASCII characters. Other characters would expose a surrogate."""
    return text.isascii() and is_one_word(text)


def _one_word(draw: Callable[[], str]) -> str:
    value = draw()
    for _ in range(_ATTEMPTS):
        if _is_plain_word(value):
            break
        value = draw()
    return value if is_one_word(value) else next(part for part in re.findall(r"[^\W\d_]+", value))


def _weighted(values: Callable[[str], Mapping[str, float]]) -> dict[str, float]:
    """From folded names of all locales to their shares; locales are weighted as in the labelled text."""
    found: dict[str, float] = {}
    for locale, weight in LOCALE_WEIGHTS.items():
        mine = values(locale)
        total = sum(mine.values())
        for name, share in mine.items():
            found[fold(name)] = found.get(fold(name), 0.0) + weight * share / total
    return found


def _by_words(values: Mapping[str, float]) -> dict[int, Pool]:
    """Pools of the values whose words only spaces divide, by the number of words."""
    groups: dict[int, dict[str, float]] = {}
    for value, weight in values.items():
        parts = value.split(" ")
        if all(map(is_one_word, parts)):
            groups.setdefault(len(parts), {})[value] = weight
    return {count: Pool(list(group), list(group.values())) for count, group in groups.items()}
