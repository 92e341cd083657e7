"""Filling sentences with a masked LM: rounds over many sentences, in an order that is a setting (paper 3.2).

In each round the order says which open slots of a sentence are scored and which of these are filled; what a slot sees
is what was filled in the rounds before. So the model works on whole batches whatever the order, and a fill depends
neither on the size of the batches nor on what else is in them.

In which order the slots of a sentence are filled, and so which fills a slot sees when it is filled.

- ``left_to_right`` (paper 3.2): one slot after the other, each seeing the fills before it and mask tokens behind it;
- ``all_at_once``: every slot sees mask tokens at all others, and one forward pass per sentence does;
- ``most_confident_first``: in each round the slot whose best allowed word has the highest probability among all words
  that the filler can write, of equal ones the first; the others are scored anew once it is filled.

Filling goes in rounds over many sentences. In each round an order asks for scores of some of the open slots of a
sentence, and settles some of these. A line that is longer than the model's positions would need thousands of rounds
where it has thousands of markers; in such a line slots that are at least ``reach`` pieces apart may be settled in the
same round, so the order holds among slots that are nearer to each other than that. Elsewhere ``reach`` is infinite.
What is surest is looked for in each window of such a line by itself.
"""

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tasks.errors import ModelError
from tasks.filling.choice import Choice, ChoiceWithoutOriginals, HidingChoice
from tasks.filling.fill_words import unwanted, wanted
from tasks.filling.filled_corpus import BuiltFiller
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.settings import ChoosingMethod, OrderName

if TYPE_CHECKING:
    import torch

    from tasks.filling.context import FillContext


class AllAtOnce:
    """Every slot in the first round. Positions are those of the open slots in their sentence's pieces, ascending."""

    needs_confidence = False
    """Whether ``settled`` looks at confidences."""

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """Which slots, as ascending indices into ``positions``, are scored in this round; at least one."""
        return list(range(len(positions)))

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """Which of the scored slots that share a window, as indices into their ``positions``, are filled now.

        ``taken``: positions that an earlier window of the sentence had filled in this round. The first window of a
        sentence has at least one slot filled.
        """
        return list(range(len(positions)))


class LeftToRight(AllAtOnce):
    """The first open slot, and in a long line each next one that is far enough from the one before it."""

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """The first, and those that are far enough from the one before them."""
        chosen = [0]
        while (following := bisect_left(positions, positions[chosen[-1]] + reach)) < len(positions):
            chosen.append(following)
        return chosen


class MostConfidentFirst(AllAtOnce):
    """The slot with the highest confidence, and in a long line each next best that is far enough from better ones."""

    needs_confidence = True

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """The best, and then the best of those that are far enough from it and from what is taken, and so on."""
        too_near = [False] * len(positions)

        def block(position: int) -> None:
            for index in range(bisect_right(positions, position - reach), bisect_left(positions, position + reach)):
                too_near[index] = True

        for position in taken:
            block(position)
        chosen = []
        for index in sorted(range(len(positions)), key=lambda index: (-confidences[index], index)):
            if not too_near[index]:
                chosen.append(index)
                block(positions[index])
        return chosen


ORDERS: dict[OrderName, type[AllAtOnce]] = {
    "left_to_right": LeftToRight,
    "all_at_once": AllAtOnce,
    "most_confident_first": MostConfidentFirst,
}


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
        self._unwanted = unwanted(candidates.words)
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
        none = [self._unwanted[wanted(asked[index][0].sentence, asked[index][1])] for index in settled]
        chosen = self._choice.choose(scores.cpu().numpy(), [places[index] for index in settled], none)
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


def masked_filler(context: "FillContext", method: ChoosingMethod) -> BuiltFiller:
    """The filler of a fill with a masked language model; originals and other classes are kept from its choice."""
    candidates = context.candidates
    off_list = context.kept.off_list(candidates.words)
    choice = method.choice(off_list, context.randomness, context.learned)
    if context.originals is not None:
        choice = ChoiceWithoutOriginals(cast(HidingChoice, choice), candidates.words, context.originals)
    if context.classes is not None:
        choice = context.classes.restricted(choice, candidates.words)
    filler = MaskedFiller(
        context.model.masked,
        candidates,
        choice,
        batch_sentences=method.batch_sentences,
        order=method.order,
        allowed=off_list if method.follows_list else None,
    )
    return BuiltFiller(filler, context.casing(is_cased=candidates.cased))
