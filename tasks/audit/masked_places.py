"""Masked words that an attacker guesses, with the attacker's knowledge of each."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.corpora.masked_text import parse_masked
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.corpora.words import fold, folded_words
from tasks.filling.aligned_fills import filled_lines, side_by_side
from tasks.filling.masked_lm.places import OpenPlace
from tasks.filling.masked_sentence import fills_of, read_masked_line, with_spans

REACH = 10


@dataclass(frozen=True, slots=True)
class MaskedPlace:
    """A masked word and its context."""

    line: int
    open: OpenPlace
    """Masks at all markers of the line."""
    original: str
    """Folded."""
    label: str
    """Class that the attacker sees; ``MASK`` if none."""
    near: tuple[str, ...] = ()
    """Folded unmasked words of the document, at most ``REACH`` lines away."""
    substitute: str | None = None
    """Word of a fill that reveals the form of the masked word; ``None`` if there is none."""
    around: tuple[str, str] = ("", "")
    """Text before and after the line. The attacker reads the line with and without it, and takes the mean."""
    passages: Mapping[str, float] = field(default_factory=dict)
    """Folded words of background passages about the line, each with its weight."""

    @property
    def in_context(self) -> OpenPlace:
        """The place in its line, with the text around the line."""
        (before, after), (first, *others) = self.around, self.open.texts
        return OpenPlace((before + first, *others[:-1], others[-1] + after), self.open.slot)


def masked_places(
    masked: str | Path,
    sidecar: str | Path,
    most: int,
    seed: int,
    *,
    copies: int = 1,
    merge_markers: bool = True,
    following_fill: str | Path | None = None,
    documents: str | Path | None = None,
) -> list[MaskedPlace]:
    """At most ``most`` masked words, drawn uniformly by ``seed`` without repetition.

    ``following_fill``: a fill whose words have the class and form of the masked ones, with so many ``copies`` and
    merged markers. ``documents``: the name of each line's document; without it each line is a document.
    """
    number = sum(len(spans) for spans in read_sidecar(sidecar))
    drawn = set(random.Random(seed).sample(range(number), min(most, number)))
    fills = filled_lines(masked, following_fill or masked, copies, merge_markers=merge_markers)
    lines = list(read_lines(masked))
    names: Sequence[object] = list(read_documents(documents)) if documents else range(len(lines))
    places: list[MaskedPlace] = []
    before = 0
    for line, spans, (merged, texts), name in side_by_side(lines, read_sidecar(sidecar), fills, names):
        chosen = [span for index, span in enumerate(spans, before) if index in drawn]
        before += len(spans)
        if not chosen:
            continue
        sentence = with_spans(read_masked_line(line, merged.number, merge_markers=False), spans)
        around = range(max(0, merged.number - 1 - REACH), min(len(lines), merged.number + REACH))
        near = tuple(word for other in around if names[other] == name for word in _clear_words(lines[other]))
        written: dict[int, list[str]] = {}
        for text in texts if following_fill else ():
            for slot, (start, end) in zip(merged.slots, fills_of(merged, text) or (), strict=False):
                for marker in range(slot.first_marker, slot.last_marker + 1):
                    written.setdefault(marker, []).append(text[start:end])
        places += [
            MaskedPlace(
                sentence.number,
                OpenPlace(sentence.texts, span.marker),
                fold(span.original),
                span.label if following_fill else sentence.slots[span.marker].label,
                near,
                written.get(span.marker, [None])[0],
            )
            for span in chosen
        ]
    return places


def _clear_words(masked_line: str) -> Iterator[str]:
    texts = (piece for piece in parse_masked(masked_line) if isinstance(piece, str))
    return (word for text in texts for word in folded_words(text))
