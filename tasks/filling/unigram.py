"""Unigram: the control without any context (not in the paper): a word off the list, by its frequency in generic text.

Whatever a filler does better than this, it does by reading the sentence; what this does better than the masked text is
merely giving words off the list their share of the text back.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tasks.errors import CorpusError
from tasks.filling.left_to_right import Fill
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import MaskedSentence
from tasks.filling.word_frequencies import WordFrequencies


class UnigramFiller:
    """Draws every fill by itself, with probability proportional to its count."""

    def __init__(self, frequencies: WordFrequencies, off_list: np.ndarray, randomness: MarkerRandomness) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``, which are not on the list of kept
        words."""
        allowed = np.flatnonzero(off_list)
        if allowed.size == 0:
            raise CorpusError("every word of the word counts is on the list of kept words: nothing to draw")
        self.forward_seconds: float | None = None
        """There is no model."""
        self.candidate_count = len(allowed)
        """How many words there are to choose from."""
        self._words = [frequencies.words[index] for index in allowed]
        self._cumulated = np.cumsum(frequencies.counts[allowed])
        self._randomness = randomness

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        fills = []
        for sentence in sentences:
            fills.append([self._draw(Place(sentence.number, slot.first_marker)) for slot in sentence.slots])
            advance(len(sentence.slots))
        return fills

    def _draw(self, place: Place) -> Fill:
        ticket = self._randomness.at(place).integers(self._cumulated[-1])
        return Fill(self._words[int(np.searchsorted(self._cumulated, ticket, side="right"))])
