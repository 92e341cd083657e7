"""Fills without context: words drawn by their frequency."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tasks.filling.fill_words import Wanted, unwanted, wanted
from tasks.filling.filled_lines import Kinds
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Fill, Kind, MaskedSentence


class UnigramFiller:
    """Draws each fill independently, with probability proportional to its count."""

    def __init__(
        self, words: Mapping[str | None, WordFrequencies], randomness: MarkerRandomness, kinds: Kinds | None = None
    ) -> None:
        """``words``: allowed words for each language of a place, or ``None`` for all places. ``kinds``: of slots."""
        self._words, self._kinds, self._randomness = words, kinds, randomness
        self._unwanted = {language: unwanted(each.words) for language, each in words.items()}
        self._pools: dict[tuple[Wanted, Kind], tuple[WordFrequencies, np.ndarray, np.ndarray]] = {}
        self.forward_seconds: float | None = None
        """``None``: there is no model."""
        self.candidate_count = sum(len(each.words) for each in words.values())
        """Number of words to choose from; a word of two languages counts twice."""

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        fills = []
        for sentence in sentences:
            places = (Place(sentence.number, slot.first_marker) for slot in sentence.slots)
            fills.append(
                [
                    self.draw(place, wanted(sentence, index), slot.kind)
                    for index, (slot, place) in enumerate(zip(sentence.slots, places, strict=True))
                ]
            )
            advance(len(sentence.slots))
        return fills

    def draw(self, place: Place, want: Wanted = "word", kind: Kind = None) -> Fill:
        """The fill of one slot."""
        if (want, kind) not in self._pools:
            self._pools[want, kind] = self._pool(want, kind)
        words, chosen, cumulated = self._pools[want, kind]
        drawn = np.searchsorted(cumulated, self._randomness.at(place).integers(cumulated[-1]), side="right")
        return Fill(words.words[int(chosen[drawn])])

    def _pool(self, want: Wanted, kind: Kind) -> tuple[WordFrequencies, np.ndarray, np.ndarray]:
        """Words, indices of those that fit, and their cumulated counts."""
        language = kind if isinstance(kind, str) and kind in self._words else None
        words, allowed = self._words[language], None
        chosen = np.delete(np.arange(len(words.words)), self._unwanted[language][want])
        if language is None and self._kinds is not None:
            allowed = self._kinds.weights(words.words, kind)
        if allowed is not None and allowed[chosen].any():
            chosen = chosen[allowed[chosen]]
        return words, chosen, np.cumsum(words.counts[chosen])
