"""What the pools say about a value: the gender of a name, the kind of a place, the words of a class."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

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
_LISTS = {
    "ORGANISATION": ("companies", "agencies", "teams", "bands"),
    "WORK": ("works",),
    "MISCELLANEOUS": ("products", "events"),
}
_FEMALE_WORDS = frozenset("she her hers herself mrs ms miss".split())
_MALE_WORDS = frozenset("he him his himself mr".split())


def is_one_word(text: str) -> bool:
    """Whether a text is exactly one word, as a fill must be."""
    return word_spans(text) == [(0, len(text))]


def gender_of_text(texts: Iterable[str]) -> bool | None:
    """Whether the pronouns and forms of address of a text are female; ``None`` for both genders or neither."""
    words = {fold(word) for text in texts for word in re.findall(r"[^\W\d_]+", text)}
    female, male = bool(words & _FEMALE_WORDS), bool(words & _MALE_WORDS)
    return None if female == male else female


def gender_of_name(name: str) -> bool | None:
    """Whether a first name is a woman's; ``None`` for an unknown name and for names of both genders."""
    female, male = (_names(first_names, female).get(fold(name), 0.0) for female in (True, False))
    share = female / (female + male) if female + male else 0.5
    return True if share >= _SURE else False if share <= 1 - _SURE else None


def is_last_name(name: str) -> bool:
    """Whether a word is a last name more often than a first name."""
    first = sum(_names(first_names, female).get(fold(name), 0.0) for female in (True, False))
    return _names(last_names, False).get(fold(name), 0.0) > first


@cache
def places() -> Mapping[str, Mapping[int, Pool]]:
    """From kind of place to its names by number of words."""
    kinds = {
        "city": cities(),
        "region": {without_article(row[0]): 1.0 for row in shipped_values("regions")},
        "state": {name: 1.0 for name, _ in states()},
        "country": {without_article(row[0]): 1.0 for row in shipped_values("nationalities")},
        "state_code": {code: 1.0 for _, code in states()},
    }
    return {kind: _by_words(values) for kind, values in kinds.items()}


@cache
def kinds_of_place() -> Mapping[str, str]:
    """From folded name to kind; a name of several kinds has the best known one."""
    named = {kind: pools for kind, pools in places().items() if kind != "state_code"}
    return {fold(name): kind for kind, pools in named.items() for pool in pools.values() for name in pool.values}


@cache
def peoples() -> Mapping[str, tuple[str, ...]]:
    """Groups of words that replace each other, by kind: nationalities, peoples and persons, beliefs and believers."""
    _, *nations = zip(*shipped_values("nationalities"), strict=True)
    columns = [*nations, *zip(*shipped_values("beliefs"), strict=True)]
    kinds = [f"{kind}{of}" for kind in ("nationality", "belief") for of in ("", "_people", "_person")]
    return {
        kind: tuple(dict.fromkeys(filter(is_one_word, column))) for kind, column in zip(kinds, columns, strict=True)
    }


def words_of_class(label: str) -> list[str]:
    """All values of a class that are one word; empty for a class without a pool."""
    match label:
        case "PERSON":
            return [*_names(first_names, True), *_names(first_names, False), *_names(last_names, False)]
        case "LOCATION":
            return [name for pools in places().values() for name in pools[1].values if len(name) > 2]
        case "GROUP":
            return [word for group in peoples().values() for word in group]
    rows = [row for name in _LISTS.get(label, ()) for row in shipped_values(name)]
    return [row[0] for row in rows if is_one_word(row[0])]


@cache
def _names(names: Callable[..., Mapping[str, float]], female: bool) -> Mapping[str, float]:
    """From folded names of all locales to their shares; locales are weighted as in the labelled text."""
    found: dict[str, float] = {}
    for locale, weight in LOCALE_WEIGHTS.items():
        mine = names(locale, female=female)
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
