"""Closed groups of words that replace each other, such as months and currencies.

Every word of a group is equally likely, the original too. So a surrogate reveals the group, but nothing else about the
word. Each group has at least ``FEWEST`` members that are not on the list of never-masked words. Otherwise the word
counts as a word without a group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tasks.corpora.words import fold
from tasks.made_up.pools import shipped_values

FEWEST = 3
"""Minimum number of words of a group that may be the original."""
_ROWS = [(classes.split(","), words.split()) for classes, words in shipped_values("closed_groups")]


def _of(*wanted: str) -> tuple[Sequence[str], ...]:
    return tuple(words for classes, words in _ROWS if set(classes) & set(wanted))


GROUPS_OF_CLASS: Mapping[str, tuple[Sequence[str], ...]] = {label: _of(label) for label in ("DATE", "NUMBER", "MONEY")}
"""The groups of words that each class may have."""
GROUPS = _of(*GROUPS_OF_CLASS, "BETWEEN")
"""The groups of figures in words, in the order in which a word is looked up."""
PLACE_ENDINGS, ORGANISATION_ENDINGS = _of("PLACE"), _of("ORGANISATION")
"""Last words of names of places, such as streets, and of organisations, such as companies."""


def no_list(_: str) -> bool:
    """False: the list of never-masked words of a technique without a list is empty."""
    return False


def group_of(original: str, groups: Iterable[Sequence[str]], on_list: Callable[[str], bool] = no_list) -> Sequence[str]:
    """The first group that has the word, or an empty list. All its words may replace the word.
    ``on_list``: whether a word is on the list of never-masked words."""
    folded = fold(original)
    for group in groups:
        if folded in map(fold, group) and _may_be_another(original, group, on_list):
            return group
    return []


def _may_be_another(original: str, group: Sequence[str], on_list: Callable[[str], bool]) -> bool:
    """Whether enough words of a group may be the original, from the view of a reader who knows the list."""
    return on_list(original) or sum(not on_list(word) for word in group) >= FEWEST
