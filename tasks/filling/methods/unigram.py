"""Unigram, the control without context (not in the paper): a word that is not on the list, by its generic frequency.

The advantage of a filler over this control comes from reading the sentence. The advantage of this control over the
masked text comes only from the share of words that are not on the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.filling.settings import CountingMethod

if TYPE_CHECKING:
    from tasks.filling.fill_words import Wanted
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness, Place
    from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
    from tasks.filling.prepared_fill import PreparedFill


class Unigram(CountingMethod):
    """Control without context: a word that is not on the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    sentence: ClassVar[str] = "Control: a maskable word by its frequency, without any context; not in the paper."
    kind: Literal["unigram"]
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """Source of the frequencies: generic text, the private domain (see ``domain_frequencies``), or noisy counts of the
    masked words (see ``counted_frequencies``; needs the sidecar)."""

    def build(self, prepared: PreparedFill) -> tuple[UnigramFiller, Casing]:
        """A draw by frequency, and the usual case of the word counts."""
        words, learned = prepared.words, prepared.learned
        drawn = words.off_list(learned.frequencies or words.frequencies, learned.languages)
        return UnigramFiller(drawn, prepared.randomness), words.casing(is_cased=False)


class UnigramFiller:
    """Draws each fill independently, with probability proportional to its count."""

    def __init__(
        self,
        words: Mapping[str | None, WordFrequencies],
        randomness: MarkerRandomness,
    ) -> None:
        """``words``: allowed words for each language of a place, or ``None`` for all places."""
        import numpy as np

        from tasks.filling.fill_words import unwanted

        self._words = words
        self._chosen = {
            (language, want): np.delete(np.arange(len(each.words)), none)
            for language, each in words.items()
            for want, none in unwanted(each.words).items()
        }
        self._cumulated = {key: np.cumsum(words[key[0]].counts[chosen]) for key, chosen in self._chosen.items()}
        self.forward_seconds: float | None = None
        """``None``: there is no model."""
        self.candidate_count = sum(len(each.words) for each in words.values())
        """Number of words to choose from; a word of two languages counts twice."""
        self._randomness = randomness

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        from tasks.filling.fill_words import wanted
        from tasks.filling.marker_randomness import Place

        fills = []
        for sentence in sentences:
            fills.append(
                [
                    self.draw(Place(sentence.number, slot.first_marker), wanted(sentence, index), slot.language)
                    for index, slot in enumerate(sentence.slots)
                ]
            )
            advance(len(sentence.slots))
        return fills

    def draw(self, place: Place, want: Wanted = "word", language: str | None = None) -> Fill:
        """The fill of one slot."""
        import numpy as np

        from tasks.filling.masked_sentence import Fill

        cumulated = self._cumulated[language, want]
        drawn = np.searchsorted(cumulated, self._randomness.at(place).integers(cumulated[-1]), side="right")
        return Fill(self._words[language].words[int(self._chosen[language, want][drawn])])
