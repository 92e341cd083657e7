"""Unigram: the control without any context (not in the paper): a word off the list, by its frequency in generic text.

Whatever a filler does better than this, it does by reading the sentence; what this does better than the masked text is
merely giving words off the list their share of the text back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.filling.settings import CountingMethod

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.context import FillContext
    from tasks.filling.fill_words import Wanted
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness, Place
    from tasks.filling.masked_sentence import Fill, MaskedSentence


class Unigram(CountingMethod):
    """Control without context: a word off the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    colour: ClassVar[int | None] = 5
    sentence: ClassVar[str] = "Control: a word off the list by its frequency, without any context; not in the paper."
    kind: Literal["unigram"]
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """By its frequency in generic text, in the private domain (see ``domain_frequencies``), or by noisy counts of the
    masked words (see ``counted_frequencies``; needs the sidecar)."""

    def build(self, context: FillContext) -> BuiltFiller:
        """A draw by frequency, written as the word counts usually write the word."""
        from tasks.filling.filled_corpus import BuiltFiller

        words = context.off_list(context.learned.frequencies or context.frequencies)
        filler = UnigramFiller(words, context.randomness)
        return BuiltFiller(filler, context.casing(is_cased=False))


class UnigramFiller:
    """Draws every fill by itself, with probability proportional to its count."""

    def __init__(
        self,
        words: Mapping[str | None, WordFrequencies],
        randomness: MarkerRandomness,
    ) -> None:
        """``words``: those that may be drawn, by the language of the place, or of every place by ``None``."""
        from tasks.filling.fill_words import unwanted

        self._draws = {
            language: {want: _Draws(each.words, each.counts, none) for want, none in unwanted(each.words).items()}
            for language, each in words.items()
        }
        self.forward_seconds: float | None = None
        """There is no model."""
        self.candidate_count = sum(len(each.words) for each in words.values())
        """How many words there are to choose from; those of two languages count twice."""
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
        from tasks.filling.masked_sentence import Fill

        return Fill(self._draws[language][want].draw(self._randomness.at(place)))


class _Draws:
    """Words with their counts, to be drawn by these."""

    def __init__(self, words: Sequence[str], counts: np.ndarray, unwanted: np.ndarray) -> None:
        """``unwanted``: indices of the words that are not drawn."""
        import numpy as np

        self._words, self._chosen = words, np.delete(np.arange(len(words)), unwanted)
        self._cumulated = np.cumsum(counts[self._chosen])

    def draw(self, generator: np.random.Generator) -> str:
        """A word."""
        import numpy as np

        drawn = np.searchsorted(self._cumulated, generator.integers(self._cumulated[-1]), side="right")
        return self._words[int(self._chosen[drawn])]
