"""The filler that writes surrogates."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Literal

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.words import fold
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.surrogates.line import SurrogateLine
from tasks.filling.surrogates.marked_slots import marked_slots, runs_of
from tasks.filling.surrogates.words_by_frequency import WordsByFrequency
from tasks.made_up.known import words_of_class


class AsWritten(Casing):
    """A casing that does not change fills: surrogates get their case in the draw."""

    def __init__(self) -> None:
        super().__init__({}, filler_is_cased=True)

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The unchanged words."""
        return list(words)


class SurrogateFiller:
    """Filler that writes surrogates."""

    forward_seconds: float | None = None
    """``None``: there is no model."""

    def __init__(
        self,
        randomness: MarkerRandomness,
        frequencies: WordFrequencies | None = None,
        allowed_words: AllowedWords | None = None,
        *,
        consistent_within: Literal["line", "document", "corpus"] = "line",
    ) -> None:
        """``frequencies``: words for markers without a class. ``allowed_words``: words that surrogates should avoid,
        since the original is none of them. The key of ``randomness`` is for surrogates that are consistent beyond a
        line."""
        self.randomness, self.allowed_words = randomness, allowed_words or AllowedWords()
        self.in_corpus = consistent_within == "corpus"
        """Whether the same original gets the same surrogate in the whole corpus."""
        self.by_frequency: WordsByFrequency | None = None
        """Source for markers without a class."""
        if frequencies is not None:
            self.by_frequency = WordsByFrequency(frequencies, self.allowed_words.off_list(frequencies.words))
        self.counts: Counter[str] = Counter()
        """``surrogates_with_original``, ``surrogates_by_class`` (no sidecar) and ``surrogates_by_frequency`` (no
        class). The first includes ``surrogates_repeated``: the original already occurred in the line."""

    @cached_property
    def candidate_count(self) -> int:
        """Number of different words in the pools."""
        return len({word for label in CLASSES for word in map(fold, words_of_class(label))})

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. Raises ``CorpusError`` with the line for a marker without a class
        if there are no word counts."""
        filled = []
        for sentence in sentences:
            filled.append([fill for _, fill in sorted(self.fills(sentence).items())])
            advance(len(sentence.slots))
        return filled

    def fills(self, sentence: MaskedSentence, slots: Collection[int] | None = None) -> dict[int, Fill]:
        """From slot index to surrogate in its case, for one sentence; at least for ``slots``, or for all. A surrogate
        on the list of never-masked words is a fallback."""
        line = SurrogateLine(self, sentence)
        words: dict[int, str] = {}
        for run in runs_of(sentence, marked_slots(sentence, folded=line.beyond_line)):
            if slots is None or any(slot.index in slots for slot in run):
                words.update(zip((slot.index for slot in run), line.fill(run), strict=True))
        return {index: Fill(word, fallback=self.allowed_words.holds(word)) for index, word in words.items()}
