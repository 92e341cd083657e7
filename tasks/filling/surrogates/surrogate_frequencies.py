"""Words by frequency for markers without any class, in the form of the word that they stand for."""

import random
from functools import cached_property
from typing import Literal

import numpy as np

from tasks.errors import CorpusError
from tasks.filling.casing import usual_forms
from tasks.filling.frequencies.word_frequencies import WordFrequencies


class WordsByFrequency:
    """Words off the list of kept words: all, those in small letters, those with a capital."""

    def __init__(self, frequencies: WordFrequencies, off_list: np.ndarray | None) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``; ``CorpusError`` where none is true."""
        allowed = np.ones(len(frequencies.words), dtype=bool) if off_list is None else off_list
        small = np.array([word == word.lower() for word in frequencies.words])
        self._frequencies, self._words = frequencies, frequencies.words
        self._pools: dict[str | None, tuple[np.ndarray, np.ndarray]] = {}
        for shape, chosen in ((None, allowed), ("small", allowed & small), ("capital", allowed & ~small)):
            indices = np.flatnonzero(chosen)
            if indices.size:
                self._pools[shape] = (indices, np.cumsum(frequencies.counts[indices]))
        if not self._pools:
            raise CorpusError("every word of the word counts is on the list of kept words: nothing to draw")

    @cached_property
    def _forms(self) -> tuple[set[str], dict[str, str]]:
        """All words, folded, and the usual forms of those that are nearly always written with a capital."""
        counts = self._frequencies.counts.tolist()
        return self._frequencies.folded(), usual_forms(zip(self._frequencies.words, counts, strict=True))

    def usual_shape(self, folded: str) -> Literal["small", "capital"] | None:
        """How a folded word is usually written; ``None`` for an unknown one. The same for all its spellings."""
        known, capital = self._forms
        return "capital" if folded in capital else "small" if folded in known else None

    def draw(self, random_numbers: random.Random, shape: Literal["small", "capital"] | None) -> str:
        """A word of the shape; of any, where there is none of it."""
        indices, cumulated = self._pools.get(shape) or self._pools[None]
        ticket = random_numbers.randrange(int(cumulated[-1]))
        return self._words[int(indices[np.searchsorted(cumulated, ticket, side="right")])]
