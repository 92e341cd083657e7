"""What the pools say about an original: the gender of a name, the kind of a place."""

from collections.abc import Callable, Mapping
from functools import cached_property

from tasks.corpora.words import fold, word_spans
from tasks.made_up.pools import (
    LOCALE_WEIGHTS,
    Pool,
    cities,
    first_names,
    last_names,
    shipped_values,
    states,
    without_article,
)

_SURE = 0.8
"""Minimum share of one gender among the bearers of a first name of this gender."""
_FEWEST_PLACES = 8
_LISTS = {
    "ORGANISATION": ("companies", "agencies", "teams", "bands"),
    "WORK": ("works",),
    "MISCELLANEOUS": ("products", "events"),
}


def is_one_word(text: str) -> bool:
    """Whether a text is exactly one word, as a fill must be."""
    return word_spans(text) == [(0, len(text))]


class Known:
    """Names, places and peoples of the pools; each pool is made at its first use."""

    @cached_property
    def first_names(self) -> Mapping[str, tuple[float, float]]:
        """From folded first name to its frequencies among women and men."""
        women, men = (
            _weighted(lambda locale, female=female: first_names(locale, female=female))  # type: ignore[misc]
            for female in (True, False)
        )
        return {name: (women.get(name, 0.0), men.get(name, 0.0)) for name in women | men}

    @cached_property
    def last_names(self) -> Mapping[str, float]:
        """From folded last name to its frequency."""
        return _weighted(lambda locale: last_names(locale, female=False))

    @cached_property
    def places(self) -> Mapping[str, Mapping[int, Pool]]:
        """From kind of place to its names by number of words."""
        kinds = {
            "city": cities(),
            "region": {without_article(row[0]): 1.0 for row in shipped_values("regions")},
            "state": {name: 1.0 for name, _ in states()},
            "country": {without_article(row[0]): 1.0 for row in shipped_values("nationalities")},
            "code": {code: 1.0 for _, code in states()},
        }
        return {kind: _by_words(values) for kind, values in kinds.items()}

    def pool_of_places(self, kind: str, count: int) -> Pool | None:
        """Places of a kind with ``count`` words. A kind with very few such places would reveal the original (the Isle
        of Skye, the Gulf of Mexico), so cities replace it."""
        pools = (self.places[name].get(count) for name in (kind, "city"))
        return next((pool for pool in pools if pool is not None and len(pool.values) >= _FEWEST_PLACES), None)

    @cached_property
    def kinds_of_place(self) -> Mapping[str, str]:
        """From folded name to kind; a name of several kinds has the best known one."""
        return {
            fold(name): kind
            for kind, pools in self.places.items()
            if kind != "code"
            for pool in pools.values()
            for name in pool.values
        }

    @cached_property
    def peoples(self) -> tuple[tuple[str, ...], ...]:
        """Groups of words that replace each other: nationalities, peoples and persons, beliefs and believers."""
        _, *nations = zip(*shipped_values("nationalities"), strict=True)
        columns = [*nations, *zip(*shipped_values("beliefs"), strict=True)]
        return tuple(tuple(dict.fromkeys(filter(is_one_word, column))) for column in columns)

    def words_of_class(self, label: str) -> list[str]:
        """All values of a class that are one word; empty for a class without a pool."""
        match label:
            case "PERSON":
                return [*self.first_names, *self.last_names]
            case "LOCATION":
                return [name for pools in self.places.values() for name in pools[1].values if len(name) > 2]
            case "GROUP":
                return [word for group in self.peoples for word in group]
        rows = [row for name in _LISTS.get(label, ()) for row in shipped_values(name)]
        return [row[0] for row in rows if is_one_word(row[0])]

    def gender_of_name(self, name: str) -> bool | None:
        """Whether a first name is a woman's; ``None`` for an unknown name and for names of both genders."""
        female, male = self.first_names.get(fold(name), (0.0, 0.0))
        share = female / (female + male) if female + male else 0.5
        return True if share >= _SURE else False if share <= 1 - _SURE else None

    def is_last_name(self, name: str) -> bool:
        """Whether a word is a last name more often than a first name."""
        return self.last_names.get(fold(name), 0.0) > sum(self.first_names.get(fold(name), (0.0, 0.0)))


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
    return {count: Pool(group) for count, group in groups.items()}
