"""Unigram: the control without any context (not in the paper): a word off the list, by its frequency in generic text.

Whatever a filler does better than this, it does by reading the sentence; what this does better than the masked text is
merely giving words off the list their share of the text back.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.slot_originals import ForbiddenOriginals


class UnigramFiller:
    """Draws every fill by itself, with probability proportional to its count."""

    def __init__(
        self,
        frequencies: WordFrequencies,
        off_list: np.ndarray,
        randomness: MarkerRandomness,
        originals: ForbiddenOriginals | None = None,
        *,
        stream: int = 0,
    ) -> None:
        """``off_list``: ``(W,)`` booleans over the words of ``frequencies``, which are not on the list of kept
        words. ``originals``: what must not be drawn at each place, where that is forbidden. ``stream``: of the
        randomness of a place."""
        allowed = np.flatnonzero(off_list)
        if allowed.size == 0:
            raise CorpusError("every word of the word counts is on the list of kept words: nothing to draw")
        self.forward_seconds: float | None = None
        """There is no model."""
        self.candidate_count = len(allowed)
        """How many words there are to choose from."""
        self._words = [frequencies.words[index] for index in allowed]
        self._randomness, self._stream = randomness, stream
        self._originals = originals
        folded = [fold(word) for word in self._words] if originals is not None else []
        self._folded = set(folded)
        self._cumulated = np.cumsum(_held_down(frequencies.counts[allowed], folded))

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        fills = []
        for sentence in sentences:
            fills.append([self.draw(Place(sentence.number, slot.first_marker)) for slot in sentence.slots])
            advance(len(sentence.slots))
        return fills

    def draw(self, place: Place) -> Fill:
        """The fill of one slot; ``CorpusError`` names its line where every word is forbidden there."""
        generator = self._randomness.at(place, stream=self._stream)
        word = self._ticket(generator)
        if self._originals is None:
            return Fill(word)
        forbidden = self._originals.at(place) & self._folded
        if forbidden:
            self._originals.note(place, would_restore=fold(word) in forbidden)
        if forbidden >= self._folded:
            raise CorpusError(f"line {place.line}: every word that may be drawn is forbidden there: nothing to draw")
        # Drawing again until it is another word is a draw from the distribution without the forbidden ones.
        while fold(word) in forbidden:
            word = self._ticket(generator)
        return Fill(word)

    def _ticket(self, generator: np.random.Generator) -> str:
        ticket = generator.integers(self._cumulated[-1])
        return self._words[int(np.searchsorted(self._cumulated, ticket, side="right"))]


def _held_down(counts: np.ndarray, folded: Sequence[str]) -> np.ndarray:
    """``(W,)`` counts in which no word, in whatever case, has more than all others together (see ``slot_originals``);
    ``folded``: its ``W`` words, or nothing where the counts stay as they are."""
    totals: Counter[str] = Counter()
    for word, count in zip(folded, counts.tolist(), strict=False):
        totals[word] += count
    for word, total in totals.most_common(1):
        others = int(counts.sum()) - total
        if total > others > 0:
            mine = np.array([word == other for other in folded])
            return np.where(mine, np.maximum(counts * others // total, 1), counts)
    return counts
