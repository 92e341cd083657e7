"""Filling sentences with a masked LM: rounds over many sentences, each from left to right (paper 3.2).

In each round the first open slot of every sentence is filled. It sees the fills of earlier rounds, and mask tokens at
the later slots. So the model works on full batches, and a fill depends neither on the batch size nor on other sentences
of the batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tasks.errors import ModelError
from tasks.filling.fill_words import unwanted, wanted
from tasks.filling.filled_lines import Kinds
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import Casing, Fill, Kind, MaskedSentence

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.settings import CandidateMethod

Choose = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[int, bool]]
"""As ``CandidateMethod.choose``."""


@dataclass(slots=True)
class _Progress:
    """State of a sentence during filling. Its pieces have the fills so far, and mask tokens at the open slots."""

    sentence: MaskedSentence
    pieces: list[int]
    positions: list[int]
    """Positions of all slots."""
    fills: list[Fill] = field(default_factory=list)


class MaskedFiller:
    """Filler for sentences, with one model and one method."""

    def __init__(
        self,
        model: MaskedLanguageModel,
        candidates: CandidateWords,
        choose: Choose,
        off_list: Mapping[Kind, np.ndarray],
        randomness: MarkerRandomness,
        *,
        kinds: Kinds | None = None,
        batch_sentences: int,
    ) -> None:
        """``off_list``: ``(W,)`` booleans for each language of a place, and ``None`` for other places. ``kinds``: of
        slots; a word of weight 0 is written only if no other word fits."""
        self._model, self._candidates, self._choose, self._off_list = model, candidates, choose, off_list
        self._randomness, self._batch_sentences, self._kinds = randomness, batch_sentences, kinds
        self._unwanted = unwanted(candidates.words)
        self.counts = model.halving.counts
        """Number of batches that ran out of memory and were halved."""
        self.candidate_count = len(candidates)
        """Number of words to choose from."""

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._model.seconds

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled.

        Raises ``ModelError`` if the model's scores are not finite. If a GPU runs out of memory, batches become smaller.
        Raises ``PassingError`` if one sentence alone does not fit.
        """
        states = []
        encoded = iter(self._model.encode([sentence.texts for sentence in sentences if sentence.slots]))
        for sentence in sentences:
            pieces = next(encoded) if sentence.slots else []
            positions = self._model.open_positions(pieces)
            states.append(_Progress(sentence, pieces, positions))
        while active := [state for state in states if len(state.fills) < len(state.positions)]:
            asked = [
                self._model.ask(state.sentence.texts, slot, state.pieces, state.positions[slot])
                for state in active
                for slot in [len(state.fills)]
            ]
            for indices, scores in self._model.scored(asked, self._candidates, self._batch_sentences):
                for index, row in zip(indices, scores, strict=True):
                    self._fill(active[index], row)
                advance(len(indices))
        return [state.fills for state in states]

    def _fill(self, state: _Progress, scores: np.ndarray) -> None:
        """Fill the next slot by the ``(W,)`` scores of the candidates."""
        index, texts = len(state.fills), state.sentence.texts
        slot = state.sentence.slots[index]
        place = Place(state.sentence.number, slot.first_marker)
        scores[self._unwanted[wanted(state.sentence, index)]] = -np.inf
        if np.isneginf(scores.max()):
            raise ModelError("no word that this filler can write is allowed at one of the markers: nothing to choose")
        weights = self._kinds.weights(self._candidates.words, slot.kind) if self._kinds else None
        if weights is not None and not np.isneginf(scores[weights > 0]).all():
            scores[weights == 0] = -np.inf
        off_list = self._off_list[slot.kind if slot.kind in self._off_list else None]
        chosen, fallback = self._choose(scores, off_list, self._randomness.at(place))
        state.pieces[state.positions[index]] = int(self._candidates.entries_after(texts, index)[chosen])
        state.fills.append(Fill(self._candidates.words[chosen], fallback))


def masked_filler(prepared: "PreparedFill", method: "CandidateMethod") -> tuple[MaskedFiller, Casing]:
    """The filler for a fill by a masked language model, and its casing. Words of other classes are excluded."""
    words, learned, kinds = prepared.words, prepared.learned, prepared.kinds
    candidates, languages = words.candidates, learned.languages
    for spoken in languages.languages if languages else ():
        shares = languages.weights(candidates.words, spoken) if languages else None
        if shares is not None and not shares.any():
            raise ModelError(
                f"filler {words.opened.name!r} has no word of language {spoken!r} as one piece; take one for several "
                "languages, such as 'xlm-roberta-base', or method unigram"
            )
    off_list: dict[Kind, np.ndarray] = {
        language: words.allowed_words.off_list(candidates.words, language)
        & (learned.weighing.allowed if learned.weighing else True)
        for language in (None, *(languages.languages if languages else ()))
    }
    for mask in off_list.values():
        method.check_words(mask)
    filler = MaskedFiller(
        words.opened.masked,
        candidates,
        learned.weighing.choose if learned.weighing else method.choose,
        off_list,
        prepared.randomness,
        kinds=kinds,
        batch_sentences=method.batch_sentences,
    )
    return filler, words.casing(is_cased=candidates.cased)
