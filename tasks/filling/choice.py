"""What every filling method has in common: it chooses one word per slot from the scores of the candidates.

What the markers of a sentence stand for, slot by slot, where the private sidecar may be read.

A setting, ``forbid_original``, keeps a filler from writing the very word that was masked. It leaks a little: who knows
that it was set knows of every substitute that it is *not* the original, which rules one word out for each place, and
rules out more where only few words fit. Without it a substitute may be the original by chance, so that it proves
nothing; a restoration rate near that of guessing is often the better protection, and forbidding the one for text whose
readers would take a substitute for the truth.

It must not leak more than that. Whoever can repeat the fill without the sidecar sees where another word came out, and
which word was avoided there. So draws come from a secret then (``fill_secret``). And where one word is nearly certain,
its absence alone says that it was masked. So before the original is taken out, no word has a probability above 1/2:
what stands there is then never more than twice as probable with one word masked as with another,

    p(f | w was masked) / p(f | v was masked)  =  p(f) / (1 - p(w))  *  (1 - p(v)) / p(f)  <=  1 / (1 - p(w))  <=  2,

one bit for each place and each fill that is published (decision 0038). For a marker that n merged markers became it is
1/2n, since n words are taken out. Methods without chance, or with few words to choose from, refuse it.
"""

from collections import Counter
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


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What is kept from one slot because it was masked there, and how its absence is hidden."""

    candidates: np.ndarray
    """Indices of the originals among the candidate words."""
    most: np.ndarray
    """``(W,)``: the largest probability that each candidate has there, before the originals are taken out (see
    ``choice``)."""


class HidingChoice(Protocol):
    """A filling method that draws from a distribution, in which no word need be certain."""

    def choose(
        self,
        scores: np.ndarray,
        places: Sequence[Place],
        forbidden: Forbidden | None = None,
        held_back: Sequence[HeldBack] | None = None,
    ) -> Chosen:
        """As ``Choice.choose``; words that are ``held_back`` are not chosen."""
        ...


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


def held_down(weights: np.ndarray, most: np.ndarray) -> np.ndarray | None:
    """``(W,)`` float64 probabilities proportional to the ``(W,)`` weights, but for those that would be above ``most``,
    ``(W,)``: these are at ``most``, and the others have the rest in their own proportions. ``None`` where the words
    with a weight are too few for that.
    """
    if most[weights > 0].sum() < 1 - 1e-9:
        return None
    weights = weights.astype(np.float64)
    if (weights <= most * weights.sum()).all():
        return np.asarray(weights / weights.sum())
    at_most = np.zeros(len(weights), dtype=bool)
    while True:
        rest = np.where(at_most, 0.0, weights)
        total = rest.sum()
        scale = (1 - most[at_most].sum()) / total if total else 0.0
        probabilities = np.where(at_most, most, rest * scale)
        above = ~at_most & (probabilities > most * (1 + 1e-9))
        if not above.any():
            return probabilities
        at_most |= above


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


class ForbiddenOriginals:
    """The folded words that must not be written, by place, for the sentences that are filled at the moment."""

    def __init__(self) -> None:
        self._by_place: dict[Place, set[str]] = {}
        self._most: dict[Place, float] = {}
        self._mattered: dict[Place, bool] = {}
        self._before: Counter[str] = Counter(forbidden_places=0, forbidden_restorations=0)

    def take(self, sentences: Sequence[MaskedSentence]) -> None:
        """Take the originals of the sentences that are filled next, and forget all others."""
        self._before = self.counts
        self._mattered = {}
        self._by_place = {
            Place(sentence.number, slot.first_marker): originals
            for sentence in sentences
            for slot, originals in zip(sentence.slots, originals_of_slots(sentence), strict=True)
        }
        self._most = {
            Place(sentence.number, slot.first_marker): 1 / (2 * (slot.last_marker - slot.first_marker + 1))
            for sentence in sentences
            for slot in sentence.slots
        }

    def at(self, place: Place) -> set[str]:
        """The words that must not stand there, folded."""
        return self._by_place[place]

    def most(self, place: Place) -> float:
        """The largest probability that a word may have there before they are taken out."""
        return self._most[place]

    def note(self, place: Place, *, would_restore: bool) -> None:
        """Count a place with an original among the candidate words; of several choices there the last one counts."""
        self._mattered[place] = would_restore

    @property
    def counts(self) -> Counter[str]:
        """How often it mattered: ``forbidden_places``, those with an original among the candidate words, and
        ``forbidden_restorations``, those where the original would have been chosen."""
        counts = Counter(self._before)
        counts["forbidden_places"] += len(self._mattered)
        counts["forbidden_restorations"] += sum(self._mattered.values())
        return counts


def shares_of_forms(words: Sequence[str]) -> np.ndarray:
    """``(W,)``: one through the number of words that are the same but for their case, and are taken out together."""
    folded = [fold(word) for word in words]
    forms = Counter(folded)
    return np.array([1 / forms[word] for word in folded])


class ChoiceWithoutOriginals:
    """A filling method that draws, and each slot's originals held back from it."""

    def __init__(self, choice: HidingChoice, words: Sequence[str], originals: ForbiddenOriginals) -> None:
        """``words``: the ``W`` candidates, in whatever case."""
        self._choice, self._originals = choice, originals
        self._shares = shares_of_forms(words)
        self._candidates: dict[str, list[int]] = {}
        for index, word in enumerate(words):
            self._candidates.setdefault(fold(word), []).append(index)

    def choose(self, scores: np.ndarray, places: Sequence[Place], forbidden: Forbidden | None = None) -> Chosen:
        """Choose from ``(B, W)`` scores; ``forbidden`` is what else must not be chosen."""
        held_back = [
            HeldBack(self._indices(self._originals.at(place)), self._originals.most(place) * self._shares)
            for place in places
        ]
        nothing = np.zeros(0, dtype=np.int64)
        chosen = self._choice.choose(
            scores, places, forbidden, [replace(held, candidates=nothing) for held in held_back]
        )
        again = []
        for row, (place, held) in enumerate(zip(places, held_back, strict=True)):
            if held.candidates.size:
                would_restore = chosen.candidates[row] in held.candidates
                self._originals.note(place, would_restore=would_restore)
                again += [row] if would_restore else []
        if again:
            # Randomness belongs to the place, so a draw that was none of the originals stays as it is.
            other = self._choice.choose(
                scores[again],
                [places[row] for row in again],
                None if forbidden is None else [forbidden[row] for row in again],
                [held_back[row] for row in again],
            )
            chosen.candidates[again], chosen.fallbacks[again] = other.candidates, other.fallbacks
        return chosen

    def _indices(self, originals: set[str]) -> np.ndarray:
        found = [index for word in originals for index in self._candidates.get(word, ())]
        return np.array(sorted(found), dtype=np.int64)
