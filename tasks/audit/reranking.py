"""A causal language model that reorders the first reader's best guesses for a masked word.

Each of the best guesses is written into the line, with the first reader's likeliest words at the other markers. g(w) is
the first reader's score. The new order is by log g(w) + log p(line with w). On the chat corpus a weight of 0.5 to 2 of
the second term finds as many words, one of 0.1 two thirds. A line whose word is not among the best guesses is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tasks.audit.masked_places import MaskedPlace
from tasks.corpora.masked_text import MASK
from tasks.filling.masked_lm.places import OpenPlace
from tasks.filling.masked_sentence import Casing

if TYPE_CHECKING:
    from tasks.audit.reidentification import Reader

MOST = 20
"""Number of words that are reordered."""


@dataclass(frozen=True)
class Contested:
    """A place whose masked word is among the best guesses."""

    place: MaskedPlace
    target: int
    """Index of the masked word."""
    best: np.ndarray
    """``(B,)`` indices of the best words of the list, ``target`` among them."""
    guesses: np.ndarray
    """``(B,)`` the first reader's unnormalised probabilities."""


def new_ranks(contested: Sequence[Contested], scores: Sequence[np.ndarray]) -> list[float]:
    """The rank of each place's word, from log-probabilities of its line with each of the best guesses (B,)."""
    ranks: list[float] = []
    for each, probabilities in zip(contested, scores, strict=True):
        with np.errstate(divide="ignore"):
            summed = np.log(each.guesses.clip(0)) + probabilities
        ranks.append(1.0 + np.count_nonzero(summed > summed[each.best == each.target]))
    return ranks


def lines_with_guesses(
    contested: Sequence[Contested], reader: "Reader", words: Sequence[str], casing: Casing
) -> list[list[str]]:
    """For each place its line with each of the best guesses; other markers have the first reader's likeliest word."""
    slots = [
        [slot for slot in range(len(each.place.open.texts) - 1) if slot != each.place.open.slot] for each in contested
    ]
    asked = [
        replace(each.place, open=OpenPlace(each.place.open.texts, slot), label=MASK)
        for each, others in zip(contested, slots, strict=True)
        for slot in others
    ]
    likeliest = iter([words[int(guesses.argmax())] for guesses in reader.guesses(asked)] if asked else [])
    around = [[next(likeliest) for _ in others] for others in slots]
    return [
        [_line(each.place, words[index], others, casing) for index in each.best]
        for each, others in zip(contested, around, strict=True)
    ]


def _line(place: MaskedPlace, word: str, around: Sequence[str], casing: Casing) -> str:
    texts, slot = place.open.texts, place.open.slot
    cased = casing.write(texts, [*around[:slot], word, *around[slot:]])
    return "".join(text + fill for text, fill in zip(texts, [*cased, ""], strict=True))
