"""Tokens and token features of the conditional random field.

Tokens are the words of ``tasks.corpora.words`` and, between them, runs of one and the same other character. A token's
features are its form (folded word, shape, beginning, end, length, case) and how common it is (rank in general English,
the allow list, cluster of its embedding). Its neighbours' features are added, and the case of the whole line: lower
case, capitals or title. No feature is a list of names. Labelled text from templates is filled from such lists, so a
model with that feature learns to look names up instead of reading the context.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Generic, TypeVar

from tasks.corpora.words import fold, word_spans
from tasks.masking.lists.allow_list import SHIPPED_LIST

VERSION = 1
"""Version of the features; a model of another version cannot be used."""

Token = tuple[int, int, bool]
"""First character, one past the last, and whether it is a word."""
Group = TypeVar("Group")

_OTHER = re.compile(r"(\S)\1*")
_LETTER = re.compile(r"[^\W\d_]")
_REPEATED = re.compile(r"(.)\1{2,}")
_SENTENCE_END = frozenset(".!?:\"'|")
_RARE_RANK = 20_000
_RANKS = 100_000
_LONGEST_SHAPE = 12
_LONGEST_FORM = 40
_REMEMBERED = 1 << 15
"""Words whose groups are not made again."""
_OFFSETS = "-1", "+1", "-2", "+2"
_FAR_FEATURES = 3
"""Number of a token's features that are added at a distance of two: form, shape and rank."""


@lru_cache(maxsize=128)
def tokens_of(text: str) -> Sequence[Token]:
    """The tokens of a text, in order; every character but white space is in one of them."""
    tokens: list[Token] = []
    position = 0
    for start, end in (*word_spans(text), (len(text), len(text))):
        tokens += [(*match.span(), False) for match in _OTHER.finditer(text, position, start)]
        if start < end:
            tokens.append((start, end, True))
        position = end
    return tokens


def shape(word: str) -> str:
    """The shape of a word: ``Chicago`` gives ``Xxxx``, ``B2B`` gives ``XdX``; at most 3 of a kind in a row."""
    letters = _LETTER.sub(lambda match: "X" if match.group().isupper() else "x", word[:_LONGEST_FORM])
    return _REPEATED.sub(r"\1\1\1", re.sub(r"\d", "d", letters))[:_LONGEST_SHAPE]


class CrfFeatures(Generic[Group]):
    """Features of lines; ``clusters`` maps a folded word to its cluster features, such as ``("a7", "b103")``.

    Features that all tokens with one form share are a group; ``represent`` is called once for each.
    """

    def __init__(self, clusters: Mapping[str, tuple[str, ...]], represent: Callable[[tuple[str, ...]], Group]) -> None:
        import wordfreq

        self._clusters, self._represent = clusters, represent
        self._ranks = {word: rank for rank, word in enumerate(wordfreq.top_n_list("en", _RANKS))}
        self._allowed = frozenset(SHIPPED_LIST.read_text(encoding="utf-8").split())
        self.forget()

    def forget(self) -> None:
        """Drop all representations, so that each group is represented again."""
        self._of_word = lru_cache(maxsize=_REMEMBERED)(self._word)
        self._group = lru_cache(maxsize=None)(lambda *features: self._represent(features))

    def __call__(self, text: str, tokens: Sequence[Token]) -> list[tuple[list[Group], list[str]]]:
        """Groups of features of each token of a line, and its further features."""
        words = [text[start:end] for start, end, _ in tokens]
        views = [self._of_word(word) for word in words]
        line = self._group("bias", *_line_features(text, words))
        borders = [self._group(f"{offset} border") for offset in _OFFSETS]
        last = len(views) - 1
        features = []
        for index, ((_, look), here) in enumerate(views):
            groups = [line, here[0]]
            if index == 0 or words[index - 1][0] in _SENTENCE_END:
                groups.append(self._group("start", f"start {look}"))
            groups += [
                views[index - 1][1][1] if index else borders[0],
                views[index + 1][1][2] if index < last else borders[1],
                views[index - 2][1][3] if index > 1 else borders[2],
                views[index + 2][1][4] if index < last - 1 else borders[3],
            ]
            single = []
            if index:
                before = views[index - 1][0]
                single += [f"{before[0]}|{look}", f"{before[1]}|{look}"]
            if index < last:
                single.append(f"{look}|{views[index + 1][0][0]}")
            if index > 1:
                single.append(f"{views[index - 2][0][0]}|{views[index - 1][0][0]}|{look}")
            features.append((groups, single))
        return features

    def _word(self, word: str) -> tuple[tuple[str, str], list[Group]]:
        """A word's form and shape, and its groups for itself, and for its neighbours at -1, +1, -2 and +2."""
        folded = fold(word[:_LONGEST_FORM])
        rank = self._ranks.get(folded)
        common = folded in self._allowed
        own = [
            f"w={folded}",
            f"s={shape(word)}",
            f"r={'-' if rank is None else rank.bit_length()}",
            f"b2={folded[:2]}",
            f"b3={folded[:3]}",
            f"e2={folded[-2:]}",
            f"e3={folded[-3:]}",
            f"e4={folded[-4:]}",
            f"l={min(len(word), 15)}",
            f"c={case_of(word)}",
        ]
        if common:
            own.append("common")
        elif word[0].isupper():
            own.append("upper, not common")
        if rank is None or rank > _RARE_RANK:
            own.append("rare, upper" if word[0].isupper() else "rare")
        own += self._clusters.get(folded, ())
        near = [[f"{offset} {feature}" for feature in own] for offset in _OFFSETS[:2]]
        far = [[f"{offset} {feature}" for feature in own[:_FAR_FEATURES]] for offset in _OFFSETS[2:]]
        return (own[0], own[1]), [self._represent(tuple(group)) for group in (own, *near, *far)]


def feature_lists(
    clusters: Mapping[str, tuple[str, ...]],
) -> Callable[[str, Sequence[Token]], list[list[str]]]:
    """A function of a line and its tokens: a list of features for each token."""
    features = CrfFeatures(clusters, lambda group: group)
    return lambda text, tokens: [[*chain.from_iterable(groups), *single] for groups, single in features(text, tokens)]


def case_of(word: str) -> str:
    """``lower``, ``upper``, ``initial`` (one capital), ``title``, ``mixed title``, ``mixed``, or ``none``."""
    if word.islower():
        return "lower"
    if word.isupper():
        return "upper" if len(word) > 1 else "initial"
    if word[0].isupper():
        return "title" if word[1:].islower() else "mixed title"
    return "mixed" if _LETTER.search(word) else "none"


def _line_features(text: str, words: list[str]) -> list[str]:
    letters = _LETTER.findall(text[:2000])
    upper = sum(map(str.isupper, letters)) / len(letters) if letters else 0.0
    features = ["line " + ("lower" if upper == 0 else "upper" if upper > 0.6 else "mixed")]
    long_words = [word for word in words if len(word) > 3 and word.isalpha()]
    if len(long_words) > 3 and sum(word[0].isupper() for word in long_words) > 0.7 * len(long_words):
        features.append("line title")
    return features
