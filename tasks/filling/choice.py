"""What every filling method has in common: it chooses one word per slot from the scores of the candidates.

What the markers of a sentence stand for, slot by slot, where the private sidecar may be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError, ModelError
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_sentence import MaskedSentence

Forbidden = Sequence[np.ndarray]
"""For each of ``B`` slots the candidates that must not be chosen: indices, or ``(W,)`` booleans."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choice for ``B`` slots."""

    candidates: np.ndarray
    """``(B,)`` indices into the candidate words."""
    fallbacks: np.ndarray
    """``(B,)`` booleans: no candidate followed the off-list rule, so a word that is on the list was taken."""


class Choice(Protocol):
    """A filling method that uses a filler; one implementation per file: ``top_1``, ``top_k``, ``sample``."""

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` float32 scores (unnormalised log-probabilities of the candidate words).

        ``forbidden`` candidates are taken out before anything else, so that the K best, say, are the K best of the
        others. They are never chosen, not as a fallback either; ``ModelError`` where a slot has no other.
        """
        ...


def without_forbidden(scores: np.ndarray, forbidden: Forbidden | None) -> np.ndarray:
    """The scores with minus infinity for what is forbidden; the array itself is left as it is.

    Raises ``ModelError`` where a slot has no candidate left.
    """
    if forbidden is None or not any(row.any() if row.dtype == bool else row.size for row in forbidden):
        return scores
    scores = scores.copy()
    for row, candidates in enumerate(forbidden):
        scores[row, candidates] = -np.inf
    if np.isneginf(scores.max(axis=1)).any():
        raise ModelError("every word that this filler can write is forbidden at one of the markers: nothing to choose")
    return scores


def with_spans(sentence: MaskedSentence, spans: Sequence[MaskedSpan]) -> MaskedSentence:
    """The sentence with its record of the sidecar; ``CorpusError`` where that is of another masked text."""
    recorded = {span.marker for span in spans}
    markers = {m for slot in sentence.slots for m in range(slot.first_marker, slot.last_marker + 1)}
    if recorded != markers:
        raise CorpusError(
            f"line {sentence.number}: the sidecar has {len(recorded)} markers and the masked text {len(markers)}; "
            "give the sidecar that was written with this masked text"
        )
    return replace(sentence, spans=tuple(spans))


def spans_of_slots(sentence: MaskedSentence) -> list[list[MaskedSpan]]:
    """The spans behind each slot, in the order of the slots; empty lists without a sidecar."""
    by_marker: dict[int, list[MaskedSpan]] = {}
    for span in sentence.spans:
        by_marker.setdefault(span.marker, []).append(span)
    return [
        [span for m in range(slot.first_marker, slot.last_marker + 1) for span in by_marker.get(m, ())]
        for slot in sentence.slots
    ]


def original_words(span: MaskedSpan) -> set[str]:
    """The words of a span, folded; the whole of it where it holds none."""
    return set(folded_words(span.original) or [fold(span.original)])


def originals_of_slots(sentence: MaskedSentence) -> list[set[str]]:
    """The folded words that each slot stands for: those of all its markers where several were merged."""
    return [set().union(*map(original_words, spans)) for spans in spans_of_slots(sentence)]
