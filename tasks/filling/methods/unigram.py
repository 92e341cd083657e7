"""Unigram, the control without context (not in the paper): a word that is not on the list, by its generic frequency.

The advantage of a filler over this control comes from reading the sentence. The advantage of this control over the
masked text comes only from the share of words that are not on the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.filling.settings import CountingMethod

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.fill_words import Wanted
    from tasks.filling.filled_lines import Kinds
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness, Place
    from tasks.filling.masked_sentence import Casing, Fill, Kind, MaskedSentence
    from tasks.filling.prepared_fill import PreparedFill


class Unigram(CountingMethod):
    """Control without context: a word that is not on the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    sentence: ClassVar[str] = "Control: a maskable word by its frequency, without any context; not in the paper."
    kind: Literal["unigram"]

    def build(self, prepared: PreparedFill) -> tuple[UnigramFiller, Casing]:
        """A draw by frequency, and the usual case of the word counts."""
        words, learned = prepared.words, prepared.learned
        drawn = words.off_list(learned.frequencies or words.frequencies, learned.languages)
        return UnigramFiller(drawn, prepared.randomness, prepared.kinds), words.casing(is_cased=False)


class UnigramFiller:
    """Draws each fill independently, with probability proportional to its count."""

    def __init__(
        self, words: Mapping[str | None, WordFrequencies], randomness: MarkerRandomness, kinds: Kinds | None = None
    ) -> None:
        """``words``: allowed words for each language of a place, or ``None`` for all places. ``kinds``: of slots."""
        from tasks.filling.fill_words import unwanted

        self._words, self._kinds, self._randomness = words, kinds, randomness
        self._unwanted = {language: unwanted(each.words) for language, each in words.items()}
        self._pools: dict[tuple[Wanted, Kind], tuple[WordFrequencies, np.ndarray, np.ndarray]] = {}
        self.forward_seconds: float | None = None
        """``None``: there is no model."""
        self.candidate_count = sum(len(each.words) for each in words.values())
        """Number of words to choose from; a word of two languages counts twice."""

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        from tasks.filling.fill_words import wanted
        from tasks.filling.marker_randomness import Place

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
        import numpy as np

        from tasks.filling.masked_sentence import Fill

        if (want, kind) not in self._pools:
            self._pools[want, kind] = self._pool(want, kind)
        words, chosen, cumulated = self._pools[want, kind]
        drawn = np.searchsorted(cumulated, self._randomness.at(place).integers(cumulated[-1]), side="right")
        return Fill(words.words[int(chosen[drawn])])

    def _pool(self, want: Wanted, kind: Kind) -> tuple[WordFrequencies, np.ndarray, np.ndarray]:
        """Words, indices of those that fit, and their cumulated counts."""
        import numpy as np

        language = kind if isinstance(kind, str) and kind in self._words else None
        words, allowed = self._words[language], None
        chosen = np.delete(np.arange(len(words.words)), self._unwanted[language][want])
        if language is None and self._kinds is not None:
            allowed = self._kinds.weights(words.words, kind)
        if allowed is not None and allowed[chosen].any():
            chosen = chosen[allowed[chosen]]
        return words, chosen, np.cumsum(words.counts[chosen])
