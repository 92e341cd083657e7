"""Unigram: the control without any context (not in the paper): a word off the list, by its frequency in generic text.

Whatever a filler does better than this, it does by reading the sentence; what this does better than the masked text is
merely giving words off the list their share of the text back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.filling.settings import CountingMethod

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import ForbiddenOriginals
    from tasks.filling.context import FillContext
    from tasks.filling.fill_words import Wanted
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness, Place
    from tasks.filling.masked_sentence import Fill, MaskedSentence

_TICKETS = 1 << 40
"""So many where words are held down, so that rounding moves no share that matters."""


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
        filler = UnigramFiller(words, context.randomness, context.originals)
        return BuiltFiller(filler, context.casing(is_cased=False))


class UnigramFiller:
    """Draws every fill by itself, with probability proportional to its count."""

    def __init__(
        self,
        words: Mapping[str | None, WordFrequencies],
        randomness: MarkerRandomness,
        originals: ForbiddenOriginals | None = None,
        *,
        stream: int = 0,
    ) -> None:
        """``words``: those that may be drawn, by the language of the place, or of every place by ``None``.
        ``originals``: what must not be drawn at each place, where that is forbidden. ``stream``: of the randomness of
        a place."""
        from tasks.filling.fill_words import unwanted

        self._draws = {
            language: {want: _Draws(each.words, each.counts, none) for want, none in unwanted(each.words).items()}
            for language, each in words.items()
        }
        self.forward_seconds: float | None = None
        """There is no model."""
        self.candidate_count = sum(len(each.words) for each in words.values())
        """How many words there are to choose from; those of two languages count twice."""
        self._randomness, self._stream = randomness, stream
        self._originals = originals

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
        """The fill of one slot; ``CorpusError`` names its line where every word is forbidden there."""
        from tasks.filling.masked_sentence import Fill

        generator = self._randomness.at(place, stream=self._stream)
        draws = self._draws[language][want]
        if self._originals is None:
            return Fill(draws.ticket(generator, 1.0))
        most = self._originals.most(place)
        word = draws.ticket(generator, most)
        forbidden = self._originals.at(place) & draws.folded
        if forbidden:
            self._originals.note(place, would_restore=fold(word) in forbidden)
        if forbidden >= draws.folded:
            raise CorpusError(f"line {place.line}: every word that may be drawn is forbidden there: nothing to draw")
        # Drawing again until it is another word is a draw from the distribution without the forbidden ones.
        while fold(word) in forbidden:
            word = draws.ticket(generator, most)
        return Fill(word)


class _Draws:
    """Words with their counts, to be drawn by these."""

    def __init__(self, words: Sequence[str], counts: np.ndarray, unwanted: np.ndarray) -> None:
        """``unwanted``: indices of the words that are not drawn."""
        import numpy as np

        self._all_words, self._chosen = words, np.delete(np.arange(len(words)), unwanted)
        self._counts = counts[self._chosen]
        self._cumulated: dict[float, np.ndarray] = {}
        """By the largest probability that a word may have."""

    @cached_property
    def folded(self) -> set[str]:
        """The words, folded."""
        return {fold(self._all_words[index]) for index in self._chosen.tolist()}

    def ticket(self, generator: np.random.Generator, most: float) -> str:
        """A word; none has a larger probability than ``most``."""
        import numpy as np

        if most not in self._cumulated:
            counts = self._counts
            if most < 1:
                counts = _held_down(counts, [self._all_words[index] for index in self._chosen.tolist()], most)
            self._cumulated[most] = np.cumsum(counts)
        cumulated = self._cumulated[most]
        drawn = np.searchsorted(cumulated, generator.integers(cumulated[-1]), side="right")
        return self._all_words[int(self._chosen[drawn])]


def _held_down(counts: np.ndarray, words: Sequence[str], most: float) -> np.ndarray:
    """``(W,)`` counts in which no word, in whatever case, has more than the share ``most`` (see ``choice``);
    all have the same where they are too few for that."""
    import numpy as np

    from tasks.filling.choice import held_down

    folded = [fold(word) for word in words]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(folded))}
    word_of = np.array([numbers[word] for word in folded])
    totals = np.bincount(word_of, weights=counts)  # (V,) words in whatever case
    if (totals <= most * totals.sum()).all():
        return counts
    held = held_down(totals, np.full(len(totals), most))
    shares = np.full(len(totals), 1 / len(totals)) if held is None else held
    return np.maximum(1, np.rint(_TICKETS * shares[word_of] * counts / totals[word_of])).astype(np.int64)
