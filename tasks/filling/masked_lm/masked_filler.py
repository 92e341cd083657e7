"""Filling sentences with a masked LM: rounds over many sentences, each from left to right (paper 3.2).

In each round the first open slot of every sentence is filled. It sees the fills of earlier rounds, and mask tokens at
the later slots. So the model works on full batches, and a fill depends neither on the batch size nor on other sentences
of the batch.

A line with thousands of markers would need thousands of rounds. So in a line longer than the model's positions, one
round may fill slots at a distance of at least ``reach`` pieces. Closer slots are still filled in order. In other lines
``reach`` is infinite.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
import torch

from tasks.errors import ModelError
from tasks.filling.fill_words import Wanted, unwanted, wanted
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.prepared_fill import PreparedFill
from tasks.filling.settings import CandidateMethod, Choose
from tasks.filling.surrogates.class_check import ClassRestriction


def asked_from_the_left(positions: Sequence[int], reach: float) -> list[int]:
    """Indices of the open slots to fill in this round: the first, then each next one at a distance of at least
    ``reach``. ``positions``: ascending positions of the open slots in the pieces."""
    chosen = [0]
    while (following := bisect_left(positions, positions[chosen[-1]] + reach)) < len(positions):
        chosen.append(following)
    return chosen


_REACH = 32
"""Minimum distance in pieces of slots in the same round, in a line longer than the model's positions."""


@dataclass(slots=True)
class _Progress:
    """State of a sentence during filling. Its pieces have the fills so far, and mask tokens at the open slots."""

    sentence: MaskedSentence
    pieces: list[int]
    positions: list[int]
    """Positions of all slots."""
    reach: float
    open: list[int]
    """Slots without a fill, ascending."""
    fills: dict[int, Fill] = field(default_factory=dict)


_Asked = tuple[_Progress, list[int]]
"""A sentence and its slots in one window, ascending."""


class MaskedFiller:
    """Filler for sentences, with one model and one method."""

    def __init__(
        self,
        model: MaskedLanguageModel,
        candidates: CandidateWords,
        choices: Mapping[str | None, Choose],
        randomness: MarkerRandomness,
        *,
        shares: Mapping[str, np.ndarray] | None = None,
        restriction: ClassRestriction | None = None,
        batch_sentences: int,
    ) -> None:
        """``choices``: the choice for each language of a place, or ``None`` for all places. ``shares``: ``(W,)`` share
        of each candidate in each language; a candidate without a share is never written in this language."""
        self._model, self._candidates, self._choices = model, candidates, choices
        self._randomness, self._batch_sentences = randomness, batch_sentences
        self.restriction = restriction
        """Further restriction, by the class of the place."""
        device = model.model.device
        self._spaced, self._glued = (torch.from_numpy(e).to(device) for e in (candidates.spaced, candidates.glued))
        misplaced = unwanted(candidates.words)
        self._unwanted: dict[str | None, dict[Wanted, np.ndarray]] = {None: misplaced}
        for language, share in (shares or {}).items():
            foreign = np.flatnonzero(share == 0)
            self._unwanted[language] = {want: np.union1d(none, foreign) for want, none in misplaced.items()}
        self.counts = model.halving.counts
        """Number of batches that ran out of memory and were halved."""
        self.candidate_count = len(candidates)
        """Number of words to choose from."""
        self.forward_seconds = 0.0
        """Seconds in the model so far."""

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled.

        Raises ``ModelError`` with the line if the model's scores are not finite. If a GPU runs out of memory, batches
        become smaller. Raises ``ResourceError`` if one sentence alone does not fit.
        """
        with_slots = [sentence for sentence in sentences if sentence.slots]
        states = [
            self._begin(sentence, pieces)
            for sentence, pieces in zip(
                with_slots, self._model.encode([sentence.texts for sentence in with_slots]), strict=True
            )
        ]
        waiting = states
        while waiting:
            asked = [item for state in waiting for item in self._ask(state)]
            for batch in window_batches(
                asked,
                most_windows=self._batch_sentences,
                vocabulary_size=self._model.vocabulary_size,
                on_gpu=self._model.model.device.type == "cuda",
            ):
                advance(self._fill_batch(batch))
            for state in waiting:
                state.open = [slot for slot in state.open if slot not in state.fills]
            waiting = [state for state in waiting if state.open]
        fills = {state.sentence.number: [state.fills[slot] for slot in range(len(state.positions))] for state in states}
        return [fills.get(sentence.number, []) for sentence in sentences]

    def _begin(self, sentence: MaskedSentence, pieces: list[int]) -> _Progress:
        positions = [index for index, piece in enumerate(pieces) if piece == self._model.mask_entry]
        return _Progress(
            sentence,
            pieces,
            positions,
            math.inf if self._model.frame.fits(pieces) else _REACH,
            open=list(range(len(positions))),
        )

    def _ask(self, state: _Progress) -> list[tuple[_Asked, Window]]:
        """The windows of this round with their slots. They are made before the round fills a slot, so the context of a
        slot does not depend on batches."""
        positions = [state.positions[slot] for slot in state.open]
        slots = [state.open[index] for index in asked_from_the_left(positions, state.reach)]
        windows = self._model.frame.windows(state.pieces, [state.positions[slot] for slot in slots])
        remaining = iter(slots)
        return [((state, list(islice(remaining, len(window.positions)))), window) for window in windows]

    def _fill_batch(self, batch: Sequence[tuple[_Asked, Window]]) -> int:
        """Score and fill the ``N`` slots of a batch; returns N."""
        asked = _slots(batch)
        parts = self._model.halving.run(batch, partial(self._scored, whole=len(batch)), padded_pieces)
        for (state, slot), row in zip(asked, torch.cat(parts).cpu().numpy(), strict=True):  # (N, W)
            entries = self._candidates.glued if self._is_glued(state, slot) else self._candidates.spaced
            chosen, fallback = self._choose(row, state.sentence, slot)
            state.pieces[state.positions[slot]] = int(entries[chosen])
            state.fills[slot] = Fill(self._candidates.words[chosen], fallback)
        return len(asked)

    def _is_glued(self, state: _Progress, slot: int) -> bool:
        """Whether a slot takes the entries for words without a space before them."""
        return not self._candidates.follows_space(state.sentence.texts[slot], line_start=slot == 0)

    def _choose(self, scores: np.ndarray, sentence: MaskedSentence, index: int) -> tuple[int, bool]:
        """The candidate for a slot by its ``(W,)`` scores, and whether it is a fallback."""
        slot = sentence.slots[index]
        place = Place(sentence.number, slot.first_marker)
        scores[self._unwanted[slot.language][wanted(sentence, index)]] = -np.inf
        if np.isneginf(scores.max()):
            raise ModelError("no word that this filler can write is allowed at one of the markers: nothing to choose")
        held = self.restriction.restrict(place, scores) if self.restriction else None
        return (held, False) if held is not None else self._choices[slot.language](scores, self._randomness.at(place))

    def _scored(self, batch: Sequence[tuple[_Asked, Window]], *, whole: int) -> torch.Tensor:
        """``(N, W)`` scores of the candidates in a batch of ``whole`` windows, or in a part of one.

        Scores of the whole vocabulary are freed here, since several parts of them would exceed the GPU's memory.
        """
        asked = _slots(batch)
        started = time.perf_counter()
        logits = self._model.logits([window for _, window in batch])  # (N, V)
        sound = bool(torch.isfinite(logits.sum()))  # finite only if all scores are
        self.forward_seconds += time.perf_counter() - started
        if not sound:
            self._refuse_damaged_scores(logits, asked)
        scores = logits.index_select(1, self._spaced)
        glued = [number for number, (state, slot) in enumerate(asked) if self._is_glued(state, slot)]
        if glued and self._candidates.glued is not self._candidates.spaced:
            scores[glued] = logits[glued].index_select(1, self._glued)
        return scores if len(batch) == whole else scores.cpu()

    def _refuse_damaged_scores(self, logits: torch.Tensor, slots: Sequence[tuple[_Progress, int]]) -> None:
        bad = (~torch.isfinite(logits)).any(dim=1).tolist()  # (N,)
        lines = [state.sentence.number for (state, _), is_bad in zip(slots, bad, strict=True) if is_bad]
        if lines:
            raise ModelError(
                f"filler {self._model.name!r} gives scores that are not numbers (NaN or infinity) in line "
                f"{min(lines)}; its weights are damaged: fetch the model again, or train it with a lower learning rate"
            )


def _slots(batch: Sequence[tuple[_Asked, Window]]) -> list[tuple[_Progress, int]]:
    return [(state, slot) for (state, slots), _ in batch for slot in slots]


def masked_filler(prepared: PreparedFill, method: CandidateMethod) -> tuple[MaskedFiller, Casing]:
    """The filler for a fill by a masked language model, and its casing. Words of other classes are excluded."""
    words, languages = prepared.words, prepared.learned.languages
    candidates = words.candidates
    shares = languages.shares(candidates.words) if languages else None
    for spoken, share in (shares or {}).items():
        if not share.any():
            raise ModelError(
                f"filler {words.opened.name!r} has no word of language {spoken!r} as one piece; take one for several "
                "languages, such as 'xlm-roberta-base', or method unigram"
            )
    filler = MaskedFiller(
        words.opened.masked,
        candidates,
        {
            language: method.prepare(words.allowed_words.off_list(candidates.words, language), prepared.learned)
            for language in shares or (None,)
        },
        prepared.randomness,
        shares=shares,
        restriction=(
            ClassRestriction(candidates.words, words.opened.class_words(method.class_check, words.counts))
            if method.matches_classes
            else None
        ),
        batch_sentences=method.batch_sentences,
    )
    return filler, words.casing(is_cased=candidates.cased)
