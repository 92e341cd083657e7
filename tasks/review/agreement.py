"""Agreement of two reviewers: Cohen's kappa over the words of the lines that both have read, and their differences."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tasks.corpora.words import word_spans
from tasks.review.record import Mark, Review


@dataclass(frozen=True, slots=True)
class Difference:
    """One word on which two reviewers differ: in whether it is marked, in its class, or in direct or quasi."""

    line: int
    """Line number from 0."""
    start: int
    end: int
    first: Mark | None
    """Mark of the first reviewer; ``None``: no mark."""
    second: Mark | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two reviewers on the lines that both have read."""

    reviewers: tuple[str, str]
    lines: int
    words: int
    kappa_marked: float | None
    """Cohen's kappa of marked or not; ``None`` if chance alone would agree on every word."""
    kappa_class: float | None
    """Cohen's kappa of the class, with *not marked* as one more class."""
    differences: tuple[Difference, ...]


def cohens_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Cohen's kappa (1960) of two raters' categories, item by item: observed agreement corrected for chance.

    ``None`` if it is undefined: no item, or both raters always give one and the same category.
    """
    if not pairs:
        return None
    number = len(pairs)
    first, second = (Counter(rater) for rater in zip(*pairs, strict=True))
    observed = sum(one == other for one, other in pairs) / number
    chance = sum(count * second[category] for category, count in first.items()) / number**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def agreements(review: Review, lines: Sequence[str]) -> list[Agreement]:
    """The agreement of every two reviewers who have read a line in common. ``lines``: all lines of the text."""
    read: dict[str, dict[int, dict[tuple[int, int], Mark]]] = {}
    for each in review.lines:
        marks = {(mark.start, mark.end): mark for mark in each.marks}
        read.setdefault(each.reviewer, {})[each.line] = marks
    found = [_agreement((one, other), read[one], read[other], lines) for one, other in combinations(sorted(read), 2)]
    return [each for each in found if each.lines]


def _agreement(
    reviewers: tuple[str, str],
    first: dict[int, dict[tuple[int, int], Mark]],
    second: dict[int, dict[tuple[int, int], Mark]],
    lines: Sequence[str],
) -> Agreement:
    common = sorted(first.keys() & second.keys())
    words = [
        Difference(line, *span, first[line].get(span), second[line].get(span))
        for line in common
        for span in word_spans(lines[line])
    ]
    return Agreement(
        reviewers,
        len(common),
        len(words),
        cohens_kappa([(word.first is not None, word.second is not None) for word in words]),
        cohens_kappa([(word.first and word.first.label, word.second and word.second.label) for word in words]),
        tuple(word for word in words if word.first != word.second),
    )
