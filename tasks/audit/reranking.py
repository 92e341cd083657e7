"""A causal language model that reorders the first reader's best guesses for a masked word.

A masked language model (``reidentification``) proposes words for a place. Each of the best is written into the line.
Other markers are filled with the first reader's likeliest words, all in the case that fits the line. The causal model
scores the whole line, so it uses both sides of the place. g(w) is the first reader's score of a word. The new order is
by

    log g(w) + log p(line with w)

On the chat corpus the second term with a weight of 0.5 to 2 finds as many words, with 0.1 two thirds of them.

If the masked word is not among the best guesses, no order of them finds it, and the line is not read. The figures are
equal to those from reading all lines, in a tenth of the time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from tasks.audit.masked_places import MaskedPlace
from tasks.corpora.masked_text import MASK
from tasks.filling.masked_lm.places import OpenPlace
from tasks.filling.masked_sentence import Casing, usual_forms

if TYPE_CHECKING:
    from tasks.audit.reidentification import Reader
    from tasks.language_model.language_models import LanguageModel

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


@dataclass(frozen=True)
class Reranker:
    """A causal language model that scores whole lines."""

    model: "LanguageModel"
    casing: Casing

    @classmethod
    def load(cls, name: str, counts: Iterable[tuple[str, int]]) -> Self:
        """Loads a model by hub name, folder or ``package:NAME``; ``counts`` of cased words give each word's usual case.
        Raises ``ModelError`` if the model cannot be read."""
        from tasks.language_model.causal_lm.scoring import CausalScorer

        return cls(CausalScorer.load(name), Casing(usual_forms(counts), filler_is_cased=False))

    def ranks(self, contested: Sequence[Contested], reader: "Reader", words: Sequence[str]) -> list[float]:
        """The rank of each place's word; ``reader``: the first reader, ``words``: its list."""
        others = self._others([each.place for each in contested], reader, words)
        lines = [
            [self._line(each.place, words[index], around) for index in each.best]
            for each, around in zip(contested, others, strict=True)
        ]
        ranks: list[float] = []
        for each, probabilities in zip(contested, self.model.score_sentences(lines), strict=True):
            with np.errstate(divide="ignore"):
                scores = np.log(each.guesses.clip(0)) + probabilities
            ranks.append(1.0 + np.count_nonzero(scores > scores[each.best == each.target]))
        return ranks

    def _others(self, places: Sequence[MaskedPlace], reader: "Reader", words: Sequence[str]) -> list[list[str]]:
        """The likeliest word at each other marker of each place's line."""
        opened = [[slot for slot in range(len(each.open.texts) - 1) if slot != each.open.slot] for each in places]
        asked = [
            replace(place, open=OpenPlace(place.open.texts, slot), label=MASK)
            for place, slots in zip(places, opened, strict=True)
            for slot in slots
        ]
        likeliest = iter([words[int(guesses.argmax())] for guesses in reader.guesses(asked)] if asked else [])
        return [[next(likeliest) for _ in slots] for slots in opened]

    def _line(self, place: MaskedPlace, word: str, around: Sequence[str]) -> tuple[str, ...]:
        """The words of the line with their punctuation."""
        texts, slot = place.open.texts, place.open.slot
        cased = self.casing.write(texts, [*around[:slot], word, *around[slot:]])
        return tuple("".join(text + fill for text, fill in zip(texts, [*cased, ""], strict=True)).split())
