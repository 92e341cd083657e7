"""Fills of the class of their marker: ``[PERSON]`` becomes a name, ``[LOCATION]`` a place, checked by a tagger.

A marker with a class (its own, or the sidecar's label for ``[MASK]``) is filled in three steps:

1. The filler chooses among the words of the class (``ClassWords``), by its method and scores.
2. The tagger reads the filled sentence. A fill is right if an entity of the marker's class touches it.
3. A wrong fill becomes a surrogate of the class.

A marker without a class (from a word list) has the form of the masked word if there is a sidecar: figures, a capital,
or small letters and an ending (decision 0057). The tagger does not check it. The tagger makes errors, so the report has
the share of right fills after the first choice and at the end, and the number of surrogates.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tasks.corpora.masked_text import MASK
from tasks.filling.filled_lines import Filler
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.surrogates.class_words import ClassWords
from tasks.filling.surrogates.filler import SurrogateFiller
from tasks.filling.surrogates.marked_slots import labels_of_slots

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill

_COUNTS = ("class_slots", "class_matches_first", "class_matches", "class_surrogates")
"""Slots with a class, right fills after the first choice and at the end, and surrogates."""


@dataclass
class _Checked:
    """A sentence with a class, and its fills."""

    sentence: MaskedSentence
    labels: list[str]
    """Class of each slot."""
    fills: list[Fill]
    wrong: set[int] = field(default_factory=set)
    """Slots whose fill is not of their class."""


class ClassCheckedFiller:
    """A filler whose fills are checked for the classes of their markers."""

    def __init__(self, filler: Filler, casing: Casing, class_words: ClassWords, surrogates: SurrogateFiller) -> None:
        """``casing`` writes the fills in the case of the filled text."""
        self._filler, self._casing, self._class_words, self._surrogates = filler, casing, class_words, surrogates
        counts: Counter[str] | None = getattr(filler, "counts", None)
        self.counts = Counter[str]() if counts is None else counts
        """Counts of the filler, and ``_COUNTS``."""
        self.counts.update(dict.fromkeys(_COUNTS, 0))
        self.candidate_count = filler.candidate_count
        """Number of candidates of the filler."""

    @property
    def forward_seconds(self) -> float | None:
        """Seconds in the model of the filler."""
        return self._filler.forward_seconds

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        fills = self._filler.fill(sentences, advance)
        labels = map(labels_of_slots, sentences)
        classed = [each for each in map(_Checked, sentences, labels, fills) if {*each.labels} - {MASK}]
        slots = sum(label != MASK for each in classed for label in each.labels)
        wrong = self._wrong(classed)
        self.counts["class_slots"] += slots
        self.counts["class_matches_first"] += slots - _slots(wrong)
        self.counts["class_surrogates"] += _slots(wrong)
        for each in wrong:
            surrogates = self._surrogates.fills(each.sentence, each.wrong)
            for slot in each.wrong:
                each.fills[slot] = surrogates[slot]
        self.counts["class_matches"] += slots - _slots(self._wrong(wrong))
        return fills

    def _wrong(self, checked: Sequence[_Checked]) -> list[_Checked]:
        """The sentences with wrong fills; finds their slots."""
        written = [self._casing.write(each.sentence.texts, [fill.word for fill in each.fills]) for each in checked]
        lines = [each.sentence.filled(words) for each, words in zip(checked, written, strict=True)]
        for each, words, (_, spans) in zip(checked, written, self._class_words.tagger.tag(lines), strict=True):
            each.wrong, end = set(), 0
            for slot, (text, word, label) in enumerate(zip(each.sentence.texts, words, each.labels, strict=False)):
                start, end = end + len(text), end + len(text) + len(word)
                if label != MASK and label not in self._class_words.class_at(spans, start, end):
                    each.wrong.add(slot)
        return [each for each in checked if each.wrong]


def _slots(checked: Sequence[_Checked]) -> int:
    return sum(len(each.wrong) for each in checked)


def checked(prepared: "PreparedFill", filler: Filler, casing: Casing) -> ClassCheckedFiller:
    """The filler with its fills checked; ``casing`` writes them in the case of the filled text."""
    words = prepared.words
    class_words = words.opened.class_words(words.counts)
    randomness = MarkerRandomness(prepared.seed, prepared.secret)
    surrogates = SurrogateFiller(randomness, words.counts, words.allowed_words)
    return ClassCheckedFiller(filler, casing, class_words, surrogates)
