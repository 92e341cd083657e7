"""Masked words that an attacker guesses, each with what he knows of it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.masked_text import parse_masked
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.corpora.words import fold, folded_words
from tasks.filling.aligned_fills import filled_lines, fills_of, side_by_side
from tasks.filling.choice import with_spans
from tasks.filling.masked_lm.places import OpenPlace
from tasks.filling.masked_sentence import read_masked_line

REACH = 10


@dataclass(frozen=True, slots=True)
class MaskedPlace:
    """A masked word and what is known of it."""

    line: int
    open: OpenPlace
    """Masks at all markers of the line."""
    original: str
    """Folded."""
    label: str
    """Class that the attacker sees; ``MASK`` where he sees none."""
    near: tuple[str, ...] = ()
    """Folded words that stand in clear in the document at most ``REACH`` lines away."""
    favoured: frozenset[str] = frozenset()
    """Folded words that are tried before all others."""
    substitute: str | None = None
    """What a fill writes there that gives the form of the masked word away; ``None`` where none does."""


def masked_places(
    masked: str | Path,
    sidecar: str | Path,
    most: int,
    seed: int,
    *,
    returning_fill: str | Path | None = None,
    copies: int = 1,
    merge_markers: bool = True,
    following_fill: str | Path | None = None,
    documents: str | Path | None = None,
) -> list[MaskedPlace]:
    """So many of the masked words, each as likely as any other, drawn by ``seed`` without repetition.

    ``returning_fill``: a fill that writes the masked word itself by design, if the attacker has one; of so many
    ``copies`` and with markers merged as its method does. ``following_fill``: one whose words are of the class and form
    of the masked ones. ``documents``: the name of each line's document; without it each line is one.
    """
    number = sum(len(spans) for spans in read_sidecar(sidecar))
    drawn = set(random.Random(seed).sample(range(number), min(most, number)))
    fill = returning_fill or following_fill
    fills = filled_lines(masked, fill or masked, copies, merge_markers=merge_markers)
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
        for text in texts if fill else ():
            for slot, (start, end) in zip(merged.slots, fills_of(merged, text) or (), strict=False):
                for marker in range(slot.first_marker, slot.last_marker + 1):
                    written.setdefault(marker, []).append(text[start:end])
        folded = {marker: frozenset(map(fold, words)) for marker, words in written.items()}
        places += [
            MaskedPlace(
                sentence.number,
                OpenPlace(sentence.texts, span.marker),
                fold(span.original),
                span.label if following_fill else sentence.slots[span.marker].label,
                near,
                folded.get(span.marker, frozenset()) if returning_fill else frozenset(),
                written.get(span.marker, [None])[0] if following_fill else None,
            )
            for span in chosen
        ]
    return places


def _clear_words(masked_line: str) -> Iterator[str]:
    texts = (piece for piece in parse_masked(masked_line) if isinstance(piece, str))
    return (word for text in texts for word in folded_words(text))
