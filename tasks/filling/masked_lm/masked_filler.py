"""Filling sentences with a masked LM: rounds over many sentences, in an order that is a setting (paper 3.2).

In each round the order says which open slots of a sentence are scored and which of these are filled; what a slot sees
is what was filled in the rounds before. So the model works on whole batches whatever the order, and a fill depends
neither on the size of the batches nor on what else is in them.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tasks.errors import ModelError
from tasks.filling.choices.choice import Choice
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.order_of_filling import ORDERS, OrderName
from tasks.filling.masked_lm.windows import Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import Fill, MaskedSentence

if TYPE_CHECKING:
    import torch

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
    taken: list[int] = field(default_factory=list)
    """Positions that were filled in this round."""


_Asked = tuple[_Progress, list[int]]
"""A sentence and those of its slots that share a window, ascending."""


class _Scored(NamedTuple):
    """What is known of the ``N`` slots of a batch, or of a part of one."""

    scores: "torch.Tensor"
    """``(N, W)``, of the candidates alone."""
    confidences: list[float]
    glued: list[bool]
    """Whether a slot wants the entries for words that follow no space."""


class MaskedFiller:
    """Fills sentences with one model, one method and one order."""

    def __init__(
        self,
        model: MaskedLanguageModel,
        candidates: CandidateWords,
        choice: Choice,
        *,
        batch_sentences: int,
        order: OrderName = "left_to_right",
        allowed: np.ndarray | None = None,
    ) -> None:
        """``allowed``: ``(W,)`` booleans, the words whose probability makes a slot a confident one (those off the list
        where the method follows the off-list rule); all if ``None`` or where there is none."""
        import torch

        self._model, self._candidates, self._choice = model, candidates, choice
        self._batch_sentences = batch_sentences
        self._order = ORDERS[order]()
        device = model.model.device
        self._spaced, self._glued = (torch.from_numpy(e).to(device) for e in (candidates.spaced, candidates.glued))
        self._allowed: torch.Tensor | None = None
        if allowed is not None and allowed.any():
            self._allowed = torch.from_numpy(np.flatnonzero(allowed)).to(device)
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
                equal_lengths=self._model.equal_lengths,
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
        state.taken = []
        positions = [state.positions[slot] for slot in state.open]
        slots = [state.open[index] for index in self._order.asked(positions, state.reach)]
        windows = self._model.frame.windows(state.pieces, [state.positions[slot] for slot in slots])
        remaining = iter(slots)
        return [((state, list(islice(remaining, len(window.positions)))), window) for window in windows]

    def _fill_batch(self, batch: Sequence[tuple[_Asked, Window]]) -> int:
        """Score the ``N`` slots that are asked for, and fill those that the order says; how many these are."""
        import torch

        asked = _slots(batch)
        parts = self._model.halving.run(batch, partial(self._scored, whole=len(batch)), padded_pieces)
        scores = parts[0].scores if len(parts) == 1 else torch.cat([part.scores for part in parts])  # (N, W)
        confidences = [confidence for part in parts for confidence in part.confidences]
        glued = [is_glued for part in parts for is_glued in part.glued]
        settled = self._settled([owner for owner, _ in batch], confidences)
        if not settled:
            return 0
        if len(settled) < len(asked):
            scores = scores[settled]
        places = [Place(state.sentence.number, state.sentence.slots[slot].first_marker) for state, slot in asked]
        chosen = self._choice.choose(scores.cpu().numpy(), [places[index] for index in settled])
        for index, candidate, fallback in zip(
            settled, chosen.candidates.tolist(), chosen.fallbacks.tolist(), strict=True
        ):
            state, slot = asked[index]
            entries = self._candidates.glued if glued[index] else self._candidates.spaced
            state.pieces[state.positions[slot]] = int(entries[candidate])
            state.fills[slot] = Fill(self._candidates.words[candidate], fallback)
        return len(settled)

    def _scored(self, batch: Sequence[tuple[_Asked, Window]], *, whole: int) -> _Scored:
        """The candidates' scores in a batch, or in a part of one of ``whole`` windows.

        The vocabulary's scores end here: on a GPU those of several parts would take the memory that the batch had not.
        """
        import torch

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
        confidences = self._confidences(scores) if self._order.needs_confidence else [0.0] * len(asked)
        return _Scored(scores if len(batch) == whole else scores.cpu(), confidences, glued)

    def _settled(self, owners: Sequence[_Asked], confidences: Sequence[float]) -> list[int]:
        """Which of the slots of a batch are filled now, as ascending indices; a sentence's windows come in order."""
        settled: list[int] = []
        first = 0
        for state, slots in owners:
            positions = [state.positions[slot] for slot in slots]
            sure = confidences[first : first + len(slots)]
            chosen = sorted(self._order.settled(positions, sure, state.reach, state.taken))
            state.taken += [positions[index] for index in chosen]
            settled += [first + index for index in chosen]
            first += len(slots)
        return settled

    def _candidate_scores(self, logits: "torch.Tensor", glued: Sequence[bool]) -> "torch.Tensor":
        """``(N, W)`` of ``(N, V)``: each candidate by the entry that fits its slot."""
        scores = logits.index_select(1, self._spaced)
        if any(glued) and self._candidates.glued is not self._candidates.spaced:
            import torch

            rows = torch.tensor(glued, device=logits.device).nonzero()[:, 0]
            scores[rows] = logits[rows].index_select(1, self._glued)
        return scores

    def _confidences(self, scores: "torch.Tensor") -> list[float]:
        """For each of ``(N, W)`` scores the log-probability, in nats, of the best allowed word among all words.

        Rounded, so that slots that are equally sure do not differ by how their sums were rounded.
        """
        allowed = scores if self._allowed is None else scores.index_select(1, self._allowed)
        best = allowed.amax(dim=1) - scores.logsumexp(dim=1)
        return [round(confidence, 3) for confidence in best.tolist()]

    def _refuse_what_is_no_number(self, logits: "torch.Tensor", slots: Sequence[tuple[_Progress, int]]) -> None:
        import torch

        bad = (~torch.isfinite(logits)).any(dim=1).tolist()  # (N,)
        lines = [state.sentence.number for (state, _), is_bad in zip(slots, bad, strict=True) if is_bad]
        if lines:
            raise ModelError(
                f"filler {self._model.name!r} gives scores that are not numbers (NaN or infinity) in line "
                f"{min(lines)}; its weights are damaged: fetch the model again, or train it with a lower learning rate"
            )


def _slots(batch: Sequence[tuple[_Asked, Window]]) -> list[tuple[_Progress, int]]:
    return [(state, slot) for (state, slots), _ in batch for slot in slots]
