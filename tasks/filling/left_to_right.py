"""Filling a batch of sentences with a masked LM, the slots of each sentence from left to right (paper 3.2).

Round ``r`` fills slot ``r`` of every sentence that has one, so each fill is seen by the next one of its sentence and
the model still works on whole batches. Within a round sentences are sorted by length.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.filling.candidate_words import CandidateWords
from tasks.filling.choice import Choice
from tasks.filling.marker_randomness import Place
from tasks.filling.masked_language_model import MaskedLanguageModel, Window
from tasks.filling.masked_sentence import MaskedSentence

_MOST_PIECES = 8192
"""At most so many pieces per forward pass, padding included: long sentences go in smaller batches."""
_ENOUGH_PIECES = 384
"""A batch of so many pieces keeps the processor busy, so it ends rather than pad its shortest sentence by more than"""
_MOST_PADDING = 1.08
"""this factor."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands in a slot."""

    word: str
    fallback: bool = False
    """The method's own rule found no word, and another one was taken."""


@dataclass
class _Progress:
    """A sentence while it is filled; its pieces hold the fills so far and mask tokens for what is left."""

    sentence: MaskedSentence
    pieces: list[int]
    positions: list[int]
    fills: list[Fill]


class LeftToRightFiller:
    """Fills sentences with one model and one method."""

    def __init__(
        self, model: MaskedLanguageModel, candidates: CandidateWords, choice: Choice, *, batch_sentences: int
    ) -> None:
        self._model, self._candidates, self._choice = model, candidates, choice
        self._batch_sentences = batch_sentences
        self.candidate_count = len(candidates)
        """How many words there are to choose from."""
        self.forward_seconds = 0.0
        """Seconds inside the model so far."""

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        with_slots = [sentence for sentence in sentences if sentence.slots]
        encoded = self._model.encode([sentence.texts for sentence in with_slots])
        states = [
            _Progress(sentence, pieces, [i for i, piece in enumerate(pieces) if piece == self._model.mask_entry], [])
            for sentence, pieces in zip(with_slots, encoded, strict=True)
        ]
        waiting = states
        while waiting:
            for batch in self._batches(waiting):
                self._fill_next(batch)
                advance(len(batch))
            waiting = [state for state in waiting if len(state.fills) < len(state.positions)]
        fills = {state.sentence.number: state.fills for state in states}
        return [fills.get(sentence.number, []) for sentence in sentences]

    def _batches(self, waiting: Sequence[_Progress]) -> Iterator[list[tuple[_Progress, Window]]]:
        """The next slot of every waiting sentence, those of equal length together."""
        windows = [(state, self._model.window(state.pieces, state.positions[len(state.fills)])) for state in waiting]
        windows.sort(key=lambda item: len(item[1].pieces))
        batch: list[tuple[_Progress, Window]] = []
        for item in windows:
            length = len(item[1].pieces)  # the newest is the longest, so the batch is padded to its length
            full = len(batch) == self._batch_sentences or (len(batch) + 1) * length > _MOST_PIECES
            wasteful = len(batch) * length >= _ENOUGH_PIECES and length > _MOST_PADDING * len(batch[0][1].pieces)
            if batch and (full or wasteful):
                yield batch
                batch = []
            batch.append(item)
        if batch:
            yield batch

    def _fill_next(self, batch: Sequence[tuple[_Progress, Window]]) -> None:
        started = time.perf_counter()
        logits = self._model.logits([window for _, window in batch]).numpy()  # (B, V)
        self.forward_seconds += time.perf_counter() - started
        entries = []
        places = []
        for state, _ in batch:
            index = len(state.fills)
            entries.append(self._candidates.entries(state.sentence.texts[index], line_start=index == 0))
            places.append(Place(state.sentence.number, state.sentence.slots[index].first_marker))
        scores = np.stack([row[chosen] for row, chosen in zip(logits, entries, strict=True)])  # (B, W)
        chosen = self._choice.choose(scores, places)
        for (state, _), row_entries, candidate, fallback in zip(
            batch, entries, chosen.candidates.tolist(), chosen.fallbacks.tolist(), strict=True
        ):
            state.pieces[state.positions[len(state.fills)]] = int(row_entries[candidate])
            state.fills.append(Fill(self._candidates.words[candidate], fallback))
