"""The slots of a line as surrogates see them: with their class and originals, and those that are one thing together."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_sentence import MaskedSentence
from tasks.filling.slot_originals import original_words, spans_of_slots


@dataclass(frozen=True, slots=True)
class MarkedSlot:
    """A slot with what is known of it."""

    index: int
    label: str
    place: Place
    original: str | None
    """The word that it stands for (one of them where markers were merged); folded where its spelling must not decide
    what is drawn."""
    written: str | None
    """The same as it is spelled."""
    forbidden: frozenset[str]
    """Words that must not be written, folded."""


def marked_slots(sentence: MaskedSentence, *, folded: bool = False, keep_clear: bool = False) -> list[MarkedSlot]:
    """The slots of a sentence, in order. The class is the marker's, else the sidecar's; ``folded``: originals are;
    ``keep_clear``: they must not be written."""
    marked = []
    for index, (slot, spans) in enumerate(zip(sentence.slots, spans_of_slots(sentence), strict=True)):
        label = slot.label if slot.label != MASK or not spans else spans[0].label
        written = (spans[-1] if label == "PERSON" else spans[0]).original if spans else None
        original = fold(written) if folded and written is not None else written
        forbidden = frozenset().union(*map(original_words, spans)) if keep_clear else frozenset()
        place = Place(sentence.number, slot.first_marker)
        marked.append(MarkedSlot(index, label, place, original, written, forbidden))
    return marked


def runs_of(sentence: MaskedSentence, marked: Sequence[MarkedSlot]) -> list[list[MarkedSlot]]:
    """Slots of one class with nothing but white space between them, a comma between parts of a date, or the full stop
    of an initial."""
    runs: list[list[MarkedSlot]] = []
    for slot in marked:
        between = sentence.texts[slot.index]
        allowed = " \t," if slot.label == "DATE" else " \t"
        if slot.label == "PERSON" and runs and len(runs[-1][-1].original or "") == 1:
            allowed += "."  # an initial
        near = bool(runs) and slot.label != MASK and runs[-1][-1].label == slot.label
        if near and between and not between.strip(allowed):
            runs[-1].append(slot)
        else:
            runs.append([slot])
    return runs
