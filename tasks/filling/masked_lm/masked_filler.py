"""Filling sentences with a masked LM: rounds over many sentences, each from left to right (paper 3.2).

In each round the first open slot of every sentence is filled. It sees the fills of the rounds before and mask tokens
behind it. So the model works on whole batches, and a fill depends neither on the size of the batches nor on what else
is in them.

A line that is longer than the model's positions would need thousands of rounds where it has thousands of markers; in
such a line slots that are at least ``reach`` pieces apart may be filled in the same round, so the order holds among
slots that are nearer to each other than that. Elsewhere ``reach`` is infinite.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from tasks.errors import ModelError
from tasks.filling.choice import Choice, Chosen
from tasks.filling.fill_words import Wanted, unwanted, wanted
from tasks.filling.filled_corpus import BuiltFiller
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.settings import ChoosingMethod

if TYPE_CHECKING:
    from tasks.filling.context import FillContext


def asked_from_the_left(positions: Sequence[int], reach: float) -> list[int]:
    """Which of the open slots, by their ascending positions in the pieces, are filled in this round: the first, and in
    a long line each next one that is far enough from the one before it."""
    chosen = [0]
    while (following := bisect_left(positions, positions[chosen[-1]] + reach)) < len(positions):
        chosen.append(following)
    return chosen


_REACH = 32
"""In a line longer than the model's positions, slots so many pieces apart may be filled in the same round."""


@dataclass(slots=True)
class _Progress:
    """A sentence while it is filled; its pieces hold the fills so far and mask tokens for what is left."""

    sentence: MaskedSentence
    pieces: list[int]
    positions: list[int]
    """Of all slots."""
    reach: float
    open: list[int]
    """Slots without a fill, ascending."""
    fills: dict[int, Fill] = field(default_factory=dict)


_Asked = tuple[_Progress, list[int]]
"""A sentence and those of its slots that share a window, ascending."""


class _Scored(NamedTuple):
    """What is known of the ``N`` slots of a batch, or of a part of one."""

    scores: torch.Tensor
    """``(N, W)``, of the candidates alone."""
    glued: list[bool]
    """Whether a slot wants the entries for words that follow no space."""


class MaskedFiller:
    """Fills sentences with one model and one method."""

    def __init__(
        self,
        model: MaskedLanguageModel,
        candidates: CandidateWords,
        choices: Mapping[str | None, Choice],
        *,
        shares: Mapping[str, np.ndarray] | None = None,
        batch_sentences: int,
    ) -> None:
        """``choices``: what chooses, by the language of the place, or at every place by ``None``. ``shares``: for each
        language the share, ``(W,)``, of each candidate that is of it; none is written where it has no share."""
        self._model, self._candidates, self._choices = model, candidates, choices
        self._batch_sentences = batch_sentences
        device = model.model.device
        self._spaced, self._glued = (torch.from_numpy(e).to(device) for e in (candidates.spaced, candidates.glued))
        misplaced = unwanted(candidates.words)
        self._unwanted: dict[str | None, dict[Wanted, np.ndarray]] = {None: misplaced}
        for language, share in (shares or {}).items():
            foreign = np.flatnonzero(share == 0)
            self._unwanted[language] = {want: np.union1d(none, foreign) for want, none in misplaced.items()}
        self.counts = model.halving.counts
        """How often memory ran out and a batch was halved."""
        self.candidate_count = len(candidates)
        """How many words there are to choose from."""
        self.forward_seconds = 0.0
        """Seconds inside the model so far."""

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled.

        Raises ``ModelError`` where the model's scores are not numbers, naming the line. Where a GPU runs out of memory
        the sentences go in smaller batches; ``ResourceError`` where one alone does not fit.
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
        """The windows of this round, each with its slots; made before any slot is filled in it, so that what a slot
        sees does not depend on batches."""
        positions = [state.positions[slot] for slot in state.open]
        slots = [state.open[index] for index in asked_from_the_left(positions, state.reach)]
        windows = self._model.frame.windows(state.pieces, [state.positions[slot] for slot in slots])
        remaining = iter(slots)
        return [((state, list(islice(remaining, len(window.positions)))), window) for window in windows]

    def _fill_batch(self, batch: Sequence[tuple[_Asked, Window]]) -> int:
        """Score and fill the ``N`` slots that are asked for; how many these are."""
        asked = _slots(batch)
        parts = self._model.halving.run(batch, partial(self._scored, whole=len(batch)), padded_pieces)
        scores = parts[0].scores if len(parts) == 1 else torch.cat([part.scores for part in parts])  # (N, W)
        glued = [is_glued for part in parts for is_glued in part.glued]
        places = [Place(state.sentence.number, state.sentence.slots[slot].first_marker) for state, slot in asked]
        spoken = [state.sentence.slots[slot].language for state, slot in asked]
        none = [
            self._unwanted[language][wanted(state.sentence, slot)]
            for language, (state, slot) in zip(spoken, asked, strict=True)
        ]
        chosen = self._choose(scores.cpu().numpy(), places, none, spoken)
        for (state, slot), is_glued, candidate, fallback in zip(
            asked, glued, chosen.candidates.tolist(), chosen.fallbacks.tolist(), strict=True
        ):
            entries = self._candidates.glued if is_glued else self._candidates.spaced
            state.pieces[state.positions[slot]] = int(entries[candidate])
            state.fills[slot] = Fill(self._candidates.words[candidate], fallback)
        return len(asked)

    def _choose(
        self, scores: np.ndarray, places: list[Place], none: list[np.ndarray], spoken: list[str | None]
    ) -> Chosen:
        """By the choice of each place's language."""
        if len(self._choices) == 1:
            return self._choices[None].choose(scores, places, none)
        chosen = Chosen(np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=bool))
        for language in sorted({language for language in spoken if language}):
            rows = [row for row, each in enumerate(spoken) if each == language]
            part = self._choices[language].choose(
                scores[rows], [places[row] for row in rows], [none[row] for row in rows]
            )
            chosen.candidates[rows], chosen.fallbacks[rows] = part.candidates, part.fallbacks
        return chosen

    def _scored(self, batch: Sequence[tuple[_Asked, Window]], *, whole: int) -> _Scored:
        """The candidates' scores in a batch, or in a part of one of ``whole`` windows.

        The vocabulary's scores end here: on a GPU those of several parts would take the memory that the batch had not.
        """
        asked = _slots(batch)
        started = time.perf_counter()
        logits = self._model.logits([window for _, window in batch])  # (N, V)
        sound = bool(torch.isfinite(logits.sum()))  # one number that is none makes the sum none
        self.forward_seconds += time.perf_counter() - started
        if not sound:
            self._refuse_what_is_no_number(logits, asked)
        glued = [
            not self._candidates.follows_space(state.sentence.texts[slot], line_start=slot == 0)
            for state, slot in asked
        ]
        scores = self._candidate_scores(logits, glued)  # (N, W)
        return _Scored(scores if len(batch) == whole else scores.cpu(), glued)

    def _candidate_scores(self, logits: torch.Tensor, glued: Sequence[bool]) -> torch.Tensor:
        """``(N, W)`` of ``(N, V)``: each candidate by the entry that fits its slot."""
        scores = logits.index_select(1, self._spaced)
        if any(glued) and self._candidates.glued is not self._candidates.spaced:
            rows = torch.tensor(glued, device=logits.device).nonzero()[:, 0]
            scores[rows] = logits[rows].index_select(1, self._glued)
        return scores

    def _refuse_what_is_no_number(self, logits: torch.Tensor, slots: Sequence[tuple[_Progress, int]]) -> None:
        bad = (~torch.isfinite(logits)).any(dim=1).tolist()  # (N,)
        lines = [state.sentence.number for (state, _), is_bad in zip(slots, bad, strict=True) if is_bad]
        if lines:
            raise ModelError(
                f"filler {self._model.name!r} gives scores that are not numbers (NaN or infinity) in line "
                f"{min(lines)}; its weights are damaged: fetch the model again, or train it with a lower learning rate"
            )


def _slots(batch: Sequence[tuple[_Asked, Window]]) -> list[tuple[_Progress, int]]:
    return [(state, slot) for (state, slots), _ in batch for slot in slots]


def masked_filler(context: "FillContext", method: ChoosingMethod) -> BuiltFiller:
    """The filler of a fill with a masked language model; other classes are left out of its choice."""
    candidates = context.candidates
    shares = context.learned.languages.shares(candidates.words) if context.learned.languages else None
    for spoken, share in (shares or {}).items():
        if not share.any():
            raise ModelError(
                f"filler {context.model.name!r} has no word of {spoken!r} as one piece; take one for several "
                "languages, such as 'xlm-roberta-base', or method unigram"
            )
    choices: dict[str | None, Choice] = {}
    for language in shares or (None,):
        off_list = context.kept.off_list(candidates.words, language)
        choices[language] = method.choice(off_list, context.randomness, context.learned)
        if context.classes is not None:
            choices[language] = context.classes.restricted(choices[language], candidates.words)
    filler = MaskedFiller(
        context.model.masked,
        candidates,
        choices,
        shares=shares,
        batch_sentences=method.batch_sentences,
    )
    return BuiltFiller(filler, context.casing(is_cased=candidates.cased))
