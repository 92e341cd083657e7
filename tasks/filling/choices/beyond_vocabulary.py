"""Words that a filler has not as one piece, at their share of the places (not in the paper).

A masked language model that writes one piece at a marker knows some 25,000 words. Of the words that techniques mask
many are others, and a fill without them tells the language model that is adapted on it that such words do not occur.
The filler has no score for them, so its context factor in ``log_linear`` is taken to be 1:

    p(w | x) = p_frequency(w)                     for a word w off the list that the filler has not,
    p(w | x) = (1 - q) * p_log_linear(w | x)      for a candidate of ``log_linear``,

where q is the sum of p_frequency over the former. That is drawn in two steps: at each place, with probability q, a word
by its frequency; then the filler fills the other places, and reads the words that were drawn as if they were known.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tasks.corpora.words import fold
from tasks.filling.choices.unigram import UnigramFiller
from tasks.filling.filled_corpus import Filler
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.slot_originals import ForbiddenOriginals

_DECISION, _WORD = 1, 2
"""Streams of the randomness of a place; the filler's own choice has the one before."""


class BeyondVocabulary:
    """Another filler, with words beyond its vocabulary drawn by their frequency."""

    def __init__(
        self,
        filler: Filler,
        candidates: Sequence[str],
        frequencies: WordFrequencies,
        kept: KeptWords,
        randomness: MarkerRandomness,
        originals: ForbiddenOriginals | None = None,
    ) -> None:
        """``candidates``: the words that ``filler`` may choose; ``originals``: what must not be drawn at each place,
        where that is forbidden."""
        off_list = kept.off_list(frequencies.words)
        known = set(map(fold, candidates))
        beyond = off_list & np.array([fold(word) not in known for word in frequencies.words])
        self._filler, self._randomness = filler, randomness
        self._beyond = UnigramFiller(frequencies, beyond, randomness, originals, stream=_WORD) if beyond.any() else None
        self.share = float(frequencies.counts[beyond].sum() / max(1, frequencies.counts[off_list].sum()))
        """q."""
        self._drawn = 0

    @property
    def counts(self) -> Counter[str]:
        """The filler's own, and ``beyond_vocabulary``: fills that it could not have written."""
        return Counter({**getattr(self._filler, "counts", {}), "beyond_vocabulary": self._drawn})

    @property
    def forward_seconds(self) -> float | None:
        """Of the filler."""
        return self._filler.forward_seconds

    @property
    def candidate_count(self) -> int:
        """Of the filler, and the words beyond."""
        return self._filler.candidate_count + (self._beyond.candidate_count if self._beyond else 0)

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        drawn = [self._draw(sentence) for sentence in sentences]
        number = sum(map(len, drawn))
        self._drawn += number
        advance(number)
        left = [_with_known(sentence, fills) for sentence, fills in zip(sentences, drawn, strict=True)]
        rows = [row for row, sentence in enumerate(left) if sentence.slots]
        by_row = dict(zip(rows, self._filler.fill([left[row] for row in rows], advance), strict=True)) if rows else {}
        filled = []
        for row, (sentence, fills) in enumerate(zip(sentences, drawn, strict=True)):
            others = iter(by_row.get(row, ()))
            filled.append([fills[i] if i in fills else next(others) for i in range(len(sentence.slots))])
        return filled

    def _draw(self, sentence: MaskedSentence) -> dict[int, Fill]:
        """The words beyond the vocabulary, by the index of their slot."""
        if self._beyond is None:
            return {}
        places = [Place(sentence.number, slot.first_marker) for slot in sentence.slots]
        return {
            index: self._beyond.draw(place)
            for index, place in enumerate(places)
            if self._randomness.at(place, stream=_DECISION).random() < self.share
        }


def _with_known(sentence: MaskedSentence, fills: dict[int, Fill]) -> MaskedSentence:
    """The sentence with these slots filled, as if their words had never been masked."""
    if not fills:
        return sentence
    texts, slots = [sentence.texts[0]], []
    for index, (slot, text) in enumerate(zip(sentence.slots, sentence.texts[1:], strict=True)):
        if index in fills:
            texts[-1] += fills[index].word + text
        else:
            slots.append(slot)
            texts.append(text)
    return replace(sentence, texts=tuple(texts), slots=tuple(slots))
