"""The slots of a sentence with class, form and original, and runs of slots that are one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_sentence import Kind, MaskedSentence, spans_of_slots
from tasks.filling.surrogates.words_by_frequency import forms_of_slots


@dataclass(frozen=True, slots=True)
class MarkedSlot:
    """A slot with its class and its original."""

    index: int
    label: str
    place: Place
    original: str | None
    """The masked word, or one of them at a merged marker; folded if its spelling must not influence the draw."""
    written: str | None
    """The masked word in its spelling."""


def marked_slots(sentence: MaskedSentence, *, folded: bool = False) -> list[MarkedSlot]:
    """The slots of a sentence, in order. The class is the marker's, else the sidecar's. ``folded``: fold originals."""
    marked = []
    for index, (slot, spans) in enumerate(zip(sentence.slots, spans_of_slots(sentence), strict=True)):
        label = slot.label if slot.label != MASK or not spans else spans[0].label
        written = (spans[-1] if label == "PERSON" else spans[0]).original if spans else None
        original = fold(written) if folded and written is not None else written
        place = Place(sentence.number, slot.first_marker)
        marked.append(MarkedSlot(index, label, place, original, written))
    return marked


def runs_of(sentence: MaskedSentence, marked: Sequence[MarkedSlot]) -> list[list[MarkedSlot]]:
    """Runs of slots of one class. Between them is only white space, a comma between parts of a date, or the full stop
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


def labels_of_slots(sentence: MaskedSentence) -> list[str]:
    """The class of each slot: its marker's, else the sidecar's if all its words have the same one, else ``MASK``."""
    labels = []
    for slot, spans in zip(sentence.slots, spans_of_slots(sentence), strict=True):
        recorded = {span.label for span in spans}
        labels.append(slot.label if slot.label != MASK or len(recorded) != 1 else recorded.pop())
    return labels


def kinds_of_slots(sentence: MaskedSentence, forms: Mapping[str, str]) -> list[Kind]:
    """The class of each slot, else the form of the masked word, else ``None`` (without a sidecar).

    ``forms``: folded words that are nearly always written with a capital.
    """
    known = zip(labels_of_slots(sentence), forms_of_slots(sentence, forms), strict=True)
    return [form if label == MASK else label for label, form in known]
