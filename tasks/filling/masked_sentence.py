"""A masked line as the fillers see it: pieces of unmasked text, and slots between them that want one word each.

A slot stands for one marker, or for a run of markers with nothing but white space between them where these are
merged (paper 3.2). Text pieces come back into the filled line character by character; ``check_unchanged`` holds every
line against its masked form.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.corpora.masked_text import MASK, Marker, parse_masked
from tasks.corpora.sidecar import MaskedSpan


@dataclass(frozen=True, slots=True)
class Slot:
    """One place that wants a word."""

    label: str
    """Class of its markers; ``MASK`` where merged markers differ."""
    first_marker: int
    """Index, from 0, of its first marker in the masked line."""
    last_marker: int
    """Index of its last marker: the same, unless markers were merged."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands in a slot."""

    word: str
    fallback: bool = False
    """The method's own rule found no word, and another one was taken."""


@dataclass(frozen=True, slots=True)
class MaskedSentence:
    """A line with ``n`` slots between ``n + 1`` pieces of text, unescaped and possibly empty."""

    number: int
    """Line number, from 1."""
    texts: tuple[str, ...]
    slots: tuple[Slot, ...]
    spans: tuple[MaskedSpan, ...] = ()
    """What its markers stand for (private), from ``slot_originals.with_spans``; empty where no sidecar is read."""
    document: str | None = None
    """Name of the document that the line belongs to; ``None`` where nothing says so."""

    def filled(self, words: Sequence[str]) -> str:
        """The line with one word in each slot."""
        parts = [self.texts[0]]
        for word, text in zip(words, self.texts[1:], strict=True):
            parts += (word, text)
        return "".join(parts)


def read_masked_line(line: str, number: int, *, merge_markers: bool, document: str | None = None) -> MaskedSentence:
    """Parse a masked line; ``merge_markers`` makes one slot of markers that only white space separates."""
    texts = [""]
    slots: list[Slot] = []
    marker_index = 0
    for piece in parse_masked(line):
        if isinstance(piece, str):
            texts[-1] += piece
            continue
        if merge_markers and slots and not texts[-1].strip():
            before = slots.pop()
            label = before.label if before.label == piece.label else MASK
            slots.append(Slot(label, before.first_marker, marker_index))
            texts[-1] = ""
        else:
            slots.append(Slot(piece.label, marker_index, marker_index))
            texts.append("")
        marker_index += 1
    return MaskedSentence(number, tuple(texts), tuple(slots), document=document)


def check_unchanged(line: str, filled: str, sentence: MaskedSentence, words: Sequence[str]) -> None:
    """Make sure that a filled line is its masked line with words for markers and nothing else changed.

    The masked line is read anew: every character outside markers must stand in the filled line, in order, with exactly
    the fills between. Raises ``RuntimeError`` (a defect, never a user's error) that names the line by its number.
    """
    position = 0
    fills = iter(words)
    open_markers = 0
    slots = {slot.first_marker: slot for slot in sentence.slots}
    marker_index = 0
    for piece in parse_masked(line):
        if isinstance(piece, Marker):
            slot = slots.get(marker_index)
            if slot is not None:
                word = next(fills, None)
                if not word or not filled.startswith(word, position):
                    raise RuntimeError(f"line {sentence.number}: a fill is not where its marker was")
                position += len(word)
                open_markers = slot.last_marker - slot.first_marker
            elif open_markers:
                open_markers -= 1
            else:
                raise RuntimeError(f"line {sentence.number}: a marker has no fill")
            marker_index += 1
        elif open_markers and not piece.strip():
            continue
        elif open_markers or not filled.startswith(piece, position):
            raise RuntimeError(f"line {sentence.number}: unmasked text has changed")
        else:
            position += len(piece)
    if position != len(filled) or next(fills, None) is not None or open_markers:
        raise RuntimeError(f"line {sentence.number}: the filled line holds more than text and fills")
