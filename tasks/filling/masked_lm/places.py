"""Masked places of generic text and of a corpus, and a table of a masked LM's candidate probabilities at places.

Generic text is masked like the corpus: all words that are not on the list of never-masked words, or a random share for
a technique without a list. Only places of one word are guessed. A place has the same context as in filling: words at
the places before it, here the true ones, and mask tokens at the open places.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpora.words import fold, word_spans
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import read_masked_line

if TYPE_CHECKING:
    from tasks.filling.masked_lm.candidate_words import CandidateWords
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

_SEED = 1
_MASKED_SHARE = 0.15
"""Share of the words of generic text that is masked, for a technique without a list."""
_MOST_SLOTS = 64
"""Slots per forward pass; not a setting, so that averages do not depend on it."""


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """One open slot of a sentence."""

    texts: tuple[str, ...]
    """The ``n + 1`` texts around the ``n`` open slots."""
    slot: int
    """Index of the slot, from 0."""


@dataclass(frozen=True)
class GenericPlaces:
    """Masked places of generic text."""

    places: list[OpenPlace]
    masked_words: int
    """Number of masked words of the lines used."""
    without_candidate: int
    """Number of places whose word is no candidate: the filler cannot write it, or the word counts lack it."""


def generic_places(
    lines: Sequence[str], allowed_words: AllowedWords, candidates: Collection[str], *, cased: bool, most: int
) -> GenericPlaces:
    """At most ``most`` places, from lines in random order. A place sees the words of the places before it.

    ``candidates``: words, folded unless ``cased``.
    """
    randomness = MarkerRandomness(_SEED)
    places: list[OpenPlace] = []
    masked = missed = 0
    for line in randomness.at(Place(0, 0)).permutation(len(lines)).tolist():
        if len(places) >= most:
            break
        text, spans = lines[line], word_spans(lines[line])
        if allowed_words:
            spans = [(start, end) for start, end in spans if not allowed_words.holds(text[start:end])]
        elif spans:
            order = randomness.at(Place(line + 1, 0)).permutation(len(spans)).tolist()
            spans = [spans[index] for index in sorted(order[: max(1, round(_MASKED_SHARE * len(spans)))])]
        masked += len(spans)
        slots: list[list[tuple[int, int]]] = []
        for span in spans:
            # A run with only white space between is one slot.
            if slots and not text[slots[-1][-1][1] : span[0]].strip():
                slots[-1].append(span)
            else:
                slots.append([span])
        starts, ends = [slot[0][0] for slot in slots] + [len(text)], [slot[-1][1] for slot in slots]
        for index, slot in enumerate(slots):
            if len(slot) > 1:
                continue
            word = text[starts[index] : ends[index]]
            if (word if cased else fold(word)) not in candidates:
                missed += 1
                continue
            after = [text[end:start] for end, start in zip(ends[index:], starts[index + 1 :], strict=True)]
            places.append(OpenPlace((text[: starts[index]], *after), 0))
    return GenericPlaces(places[:most], masked, missed)


def places_of_corpus(lines: Sequence[str], most: int) -> list[OpenPlace]:
    """At most ``most`` slots of a masked corpus, evenly spaced; each sees mask tokens at all other slots."""
    sentences = (read_masked_line(line, 1, merge_markers=True) for line in lines)
    places = [OpenPlace(sentence.texts, slot) for sentence in sentences for slot in range(len(sentence.slots))]
    return places[:: max(1, -(-len(places) // most))]


def candidate_log_probabilities(
    model: "MaskedLanguageModel", candidates: "CandidateWords", allowed: np.ndarray, places: Sequence[OpenPlace]
) -> np.ndarray:
    """``(N, A)`` float32 log-probabilities in nats of the ``A`` allowed candidates (``(W,)`` booleans) at ``N`` places,
    normalised over these candidates. Raises as ``MaskedLanguageModel.scored``."""
    import torch

    asked = [
        model.ask(place.texts, place.slot, pieces, model.open_positions(pieces)[place.slot])
        for pieces, place in zip(model.encode([place.texts for place in places]), places, strict=True)
    ]
    table = np.empty((len(places), int(np.count_nonzero(allowed))), dtype=np.float32)
    for indices, scores in model.scored(asked, candidates, _MOST_SLOTS):
        table[indices] = torch.from_numpy(scores[:, allowed]).log_softmax(dim=1).numpy()
    return table
