"""Fills of the class of their marker: ``[PERSON]`` becomes a name, ``[LOCATION]`` a place, checked by a tagger.

1. The filler chooses among the words of the class (``ClassWords``), by its method and scores.
2. The tagger reads the filled sentence. A fill is right if an entity of the marker's class touches it.
3. A wrong fill becomes a surrogate of the class.

The class is the marker's, or the sidecar's label for ``[MASK]``. A marker without a class has the form of the masked
word if there is a sidecar (decision 0057), and the tagger does not check it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
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


class ClassCheckedFiller:
    """A filler whose fills are checked for the classes of their markers."""

    def __init__(self, filler: Filler, casing: Casing, class_words: ClassWords, surrogates: SurrogateFiller) -> None:
        """``casing`` writes the fills in the case of the filled text."""
        self._filler, self._casing, self._class_words, self._surrogates = filler, casing, class_words, surrogates
        self._counts = Counter(class_slots=0, class_matches_first=0, class_matches=0, class_surrogates=0)
        self.candidate_count = filler.candidate_count
        """Number of candidates of the filler."""

    @property
    def counts(self) -> dict[str, int]:
        """Counts of the filler; slots with a class, right fills after the first choice and at the end, surrogates."""
        return {**getattr(self._filler, "counts", {}), **self._counts}

    @property
    def forward_seconds(self) -> float | None:
        """Seconds in the model of the filler."""
        return self._filler.forward_seconds

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot."""
        fills = self._filler.fill(sentences, advance)
        slots = sum(label != MASK for sentence in sentences for label in labels_of_slots(sentence))
        wrong = self._wrong(sentences, fills, range(len(sentences)))
        found = sum(map(len, wrong.values()))
        for line, wrong_slots in wrong.items():
            surrogates = self._surrogates.fills(sentences[line], wrong_slots)
            for slot in wrong_slots:
                fills[line][slot] = surrogates[slot]
        left = sum(map(len, self._wrong(sentences, fills, wrong).values()))
        self._counts.update(
            class_slots=slots, class_matches_first=slots - found, class_surrogates=found, class_matches=slots - left
        )
        return fills

    def _wrong(
        self, sentences: Sequence[MaskedSentence], fills: Sequence[Sequence[Fill]], lines: Collection[int]
    ) -> dict[int, list[int]]:
        """From each of the ``lines`` with a wrong fill to the slots of such fills."""
        classes = {line: labels for line in lines if {*(labels := labels_of_slots(sentences[line]))} - {MASK}}
        written = {
            line: self._casing.write(sentences[line].texts, [fill.word for fill in fills[line]]) for line in classes
        }
        tagged = self._class_words.tagger.tag([sentences[line].filled(words) for line, words in written.items()])
        wrong: dict[int, list[int]] = {}
        for (line, words), (_, spans) in zip(written.items(), tagged, strict=True):
            end = 0
            for slot, (text, word, label) in enumerate(zip(sentences[line].texts, words, classes[line], strict=False)):
                start, end = end + len(text), end + len(text) + len(word)
                if label != MASK and label not in self._class_words.class_at(spans, start, end):
                    wrong.setdefault(line, []).append(slot)
        return wrong


def checked(prepared: "PreparedFill", filler: Filler, casing: Casing) -> ClassCheckedFiller:
    """The filler with its fills checked; ``casing`` writes them in the case of the filled text."""
    words = prepared.words
    surrogates = SurrogateFiller(MarkerRandomness(prepared.seed, prepared.secret), words.counts, words.allowed_words)
    return ClassCheckedFiller(filler, casing, words.opened.class_words(words.counts), surrogates)
