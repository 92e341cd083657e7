"""Dates, numbers, sums and identifiers, with or without an original."""

import random
from collections.abc import Callable

from tasks.filling.surrogates.characters import like, other_characters, other_figures, other_of_group
from tasks.filling.surrogates.dates import YEARS, other_date
from tasks.filling.surrogates.groups import no_list
from tasks.made_up.pools import shipped_words


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
