"""How often a fill is the very word that was masked, beside what guessing by frequency alone would restore.

A filling method that restores more than the guess gives private words back. Reads the sidecar, so it runs where the
private text may be; only counts leave it.
"""

from collections.abc import Mapping, Sequence

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError
from tasks.filling.masked_sentence import MaskedSentence


class Restoration:
    """Counts over slots. A slot is restored if its fill, folded, is one of the words that its markers replaced."""

    def __init__(self, off_list_probabilities: Mapping[str, float] | None) -> None:
        """``off_list_probabilities`` as of ``WordFrequencies``, or ``None`` where there are no word counts."""
        self._probabilities = off_list_probabilities
        self._slots = 0
        self._restored = 0
        self._expected = 0.0

    def add(self, sentence: MaskedSentence, spans: Sequence[MaskedSpan], words: Sequence[str]) -> None:
        """Count the fills of one line. ``CorpusError`` where its sidecar record is of another masked text."""
        by_marker: dict[int, set[str]] = {}
        for span in spans:
            by_marker.setdefault(span.marker, set()).update(map(fold, words_of(span.original) or [span.original]))
        markers = {m for slot in sentence.slots for m in range(slot.first_marker, slot.last_marker + 1)}
        if by_marker.keys() != markers:
            raise CorpusError(
                f"line {sentence.number}: the sidecar has {len(by_marker)} markers and the masked text {len(markers)}; "
                "give the sidecar that was written with this masked text"
            )
        for slot, word in zip(sentence.slots, words, strict=True):
            originals = set().union(*(by_marker[m] for m in range(slot.first_marker, slot.last_marker + 1)))
            self._slots += 1
            self._restored += fold(word) in originals
            if self._probabilities is not None:
                self._expected += sum(self._probabilities.get(original, 0.0) for original in originals)

    @property
    def rate(self) -> float | None:
        """Share of slots restored, ``None`` where there was none."""
        return self._restored / self._slots if self._slots else None

    @property
    def expected_by_frequency(self) -> float | None:
        """Expected share restored by drawing off-list words by frequency; ``None`` without word counts or slots."""
        return self._expected / self._slots if self._slots and self._probabilities is not None else None
