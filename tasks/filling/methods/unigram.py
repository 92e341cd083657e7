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
    from tasks.filling.frequencies.word_frequencies import WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness, Place
    from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.surrogates.class_words import ClassWords
    from tasks.filling.surrogates.words_by_frequency import Form


class Unigram(CountingMethod):
    """Control without context: a word that is not on the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    sentence: ClassVar[str] = "Control: a maskable word by its frequency, without any context; not in the paper."
    kind: Literal["unigram"]

    def build(self, prepared: PreparedFill) -> tuple[UnigramFiller, Casing]:
        """A draw by frequency, and the usual case of the word counts."""
        words, learned = prepared.words, prepared.learned
        drawn = words.off_list(learned.frequencies or words.frequencies, learned.languages)
        class_words = words.opened.class_words(words.counts) if self.matches_classes else None
        return UnigramFiller(drawn, prepared.randomness, class_words), words.casing(is_cased=False)


class UnigramFiller:
    """Draws each fill independently, with probability proportional to its count."""

    def __init__(
        self,
        words: Mapping[str | None, WordFrequencies],
        randomness: MarkerRandomness,
        class_words: ClassWords | None = None,
    ) -> None:
        """``words``: allowed words for each language of a place, or ``None`` for all places. ``class_words``: words of
        classes and forms, if fills follow them."""
        from tasks.filling.fill_words import unwanted

        self._words, self._class_words = words, class_words
        self._unwanted = {language: unwanted(each.words) for language, each in words.items()}
        self._pools: dict[tuple[str | None, Wanted, str | Form | None], tuple[np.ndarray, np.ndarray]] = {}
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
            kinds: Sequence[str | Form | None] = [None] * len(sentence.slots)
            if self._class_words is not None:
                kinds = self._class_words.kinds(sentence)
            fills.append(
                [
                    self.draw(Place(sentence.number, slot.first_marker), wanted(sentence, index), slot.language, kind)
                    for index, (slot, kind) in enumerate(zip(sentence.slots, kinds, strict=True))
                ]
            )
            advance(len(sentence.slots))
        return fills

    def draw(
        self, place: Place, want: Wanted = "word", language: str | None = None, kind: str | Form | None = None
    ) -> Fill:
        """The fill of one slot; ``kind``: its class or form."""
        import numpy as np

        from tasks.filling.masked_sentence import Fill

        chosen, cumulated = self._pool(language, want, kind)
        drawn = np.searchsorted(cumulated, self._randomness.at(place).integers(cumulated[-1]), side="right")
        return Fill(self._words[language].words[int(chosen[drawn])])

    def _pool(self, language: str | None, want: Wanted, kind: str | Form | None) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the words that fit, and their cumulated counts."""
        import numpy as np

        if (language, want, kind) not in self._pools:
            words = self._words[language]
            chosen = np.delete(np.arange(len(words.words)), self._unwanted[language][want])
            allowed = None if self._class_words is None else self._class_words.allowed(words.words, kind)
            if allowed is not None and allowed[chosen].any():
                chosen = chosen[allowed[chosen]]
            self._pools[language, want, kind] = chosen, np.cumsum(words.counts[chosen])
        return self._pools[language, want, kind]
