"""Free filling with a causal LM, as in the paper (3.2): the model is given the prompt and writes the whole sentence.

Nothing keeps a model from changing words that it should copy, or from writing none or two at a marker. Every sentence
is held against its masked form (``Alignment``); one that fails is written again by chance, and in the end filled
in another way. All of this is counted.

The result is that of writing one piece after the other, but most pieces are known beforehand: the model reads the
known text behind a word in one pass, and where each piece is the one that it would have written, it is taken; where one
is not, the model's own is, and what was read in vain is taken back. So a sentence takes about as many passes as it has
markers, and a sentence that has left its masked form is given up at once.

Whether a sentence that a model wrote is the masked one with one word for each marker, and which words these are.

Every known character must stand there as it is, white space by any white space. What stands at a marker must be one
word by the rules of ``candidate_words``, and not the marker's own name, which models copy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import regex
import torch

from tasks.batches import batches_that_fit
from tasks.corpora.masked_text import MASK
from tasks.filling.causal_lm.language_model import (
    INSTRUCTION,
    CausalLanguageModel,
    CausalPrompt,
    EncodedSentence,
    encode_sentences,
)
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock
from tasks.filling.filled_corpus import Filler
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import is_word
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.methods.free import Free

_LONGEST_FILL = 40
_UNFINISHED = "\ufffd"
"""What the first bytes of a character are decoded to."""


class Alignment:
    """Holds texts against one masked sentence."""

    def __init__(self, texts: Sequence[str]) -> None:
        """``texts``: the ``n + 1`` known texts round ``n`` slots."""
        # Not a lazy repetition: with one, regex finds a partial match in any text.
        slot = rf"(\S{{1,{_LONGEST_FILL}}})"
        self._pattern = regex.compile(r"\s*" + slot.join(map(_known, _stripped(texts))) + r"\s*")

    def words(self, text: str) -> list[str] | None:
        """The words at the slots, or ``None`` where the text is another sentence or has no word at a slot."""
        match = self._pattern.fullmatch(text)
        if match is None or not all(is_word(word) and MASK not in word for word in match.groups()):
            return None
        return list(match.groups())

    def is_possible(self, text: str) -> bool:
        """Whether the text can still become the sentence by writing on."""
        return self._pattern.fullmatch(text.rstrip(_UNFINISHED), partial=True) is not None


def _stripped(texts: Sequence[str]) -> list[str]:
    """Without white space at the ends of the line."""
    inside = list(texts)
    inside[0] = inside[0].lstrip()
    inside[-1] = inside[-1].rstrip()
    return inside


def _known(text: str) -> str:
    parts = regex.split(r"\s+", text)
    return r"\s+".join(map(regex.escape, parts))


_MOST_KEPT_PIECES = 16384
_ENOUGH_READS = 4
"""A batch whose prompts are so many times what keeps the device busy ends rather than pad by more than"""
_MOST_PADDING = 1.25
"""this factor; what follows the prompts is read in small pieces, which want a large batch."""
_SPARE_PIECES = 8
"""A sentence may have so many pieces more for each slot than its known text, and so many besides."""
_Written = tuple[list[str] | None, list[int]]
"""The words of a sentence, ``None`` where it is another one, and all pieces that were written."""
_STREAM = 1 << 24
"""Random streams from here on are those of further attempts; those below belong to the candidates of words."""


@dataclass
class _Writing:
    """A sentence while the model writes it."""

    encoded: EncodedSentence
    alignment: Alignment
    attempt: int
    unread: list[int]
    """Pieces of the prompt or of the sentence that the model has not read."""
    written: list[int]
    longest: int
    """It may have so many pieces."""
    segment: int = 0
    """Known text that comes next, or stands before the slot that is being written."""
    position: int = 0
    """Pieces of it that were written."""
    astray: bool = False
    """Written in other pieces than expected, which may be the same text: from here on nothing is guessed."""
    begun: bool = False
    """Whether the slot behind the known text has a piece."""
    done: bool = False
    words: list[str] | None = None

    def guess(self) -> list[int]:
        """The pieces that come next if the model copies what it is to copy."""
        known = self.encoded.known
        if self.astray:
            return []
        if self.position < len(known[self.segment]):
            return known[self.segment][self.position :]
        # Within a slot: perhaps its word is complete.
        return known[self.segment + 1] if self.begun else []


class FreeFiller:
    """Fills sentences with one causal LM."""

    def __init__(
        self,
        language_model: CausalLanguageModel,
        settings: Free,
        randomness: MarkerRandomness,
        fallback: Filler,
    ) -> None:
        """``fallback`` fills the sentences that the model does not get right."""
        self._language_model, self._settings = language_model, settings
        self._randomness, self._fallback = randomness, fallback
        self._prompt = CausalPrompt(language_model, language_model.instruction or INSTRUCTION)
        self._clock = ForwardClock()
        self._halving = BatchHalving(language_model.name)
        self.candidate_count = fallback.candidate_count
        """Words that the fallback chooses from; the model itself may write any."""
        self._counts = dict.fromkeys(
            ("free_sentences", "free_malformed", "free_rewritten", "free_handed_over", "free_too_long"), 0
        )

    @property
    def forward_seconds(self) -> float:
        """Seconds inside the model so far."""
        return self._clock.seconds + (self._fallback.forward_seconds or 0.0)

    @property
    def counts(self) -> dict[str, int]:
        """What a report says besides: of ``free_sentences`` so many were ``free_malformed`` at first, of which so many
        ``free_rewritten`` rightly and so many ``free_handed_over`` to the fallback; ``free_too_long`` ones were handed
        over without an attempt."""
        others = getattr(self._fallback, "counts", {})
        own = {**self._counts, "pieces_read": self._clock.pieces, **self._halving.counts}
        return {**others, **{name: count + others.get(name, 0) for name, count in own.items()}}

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        fills: list[list[Fill]] = [[] for _ in sentences]
        with_slots = [index for index, sentence in enumerate(sentences) if sentence.slots]
        self._counts["free_sentences"] += len(with_slots)
        waiting = dict(zip(with_slots, self.encode([sentences[index] for index in with_slots]), strict=True))
        fitting = {index: encoded for index, encoded in waiting.items() if self._fits(encoded)}
        self._counts["free_too_long"] += len(waiting) - len(fitting)
        for attempt in range(1 + self._settings.attempts):
            written = self.write(list(fitting.values()), attempt)
            for index, words in zip(list(fitting), written, strict=True):
                if words is None:
                    continue
                fills[index] = [Fill(word) for word in words]
                advance(len(words))
                self._counts["free_rewritten"] += attempt > 0
                del fitting[index], waiting[index]
            if attempt == 0:
                self._counts["free_malformed"] += len(fitting)
            if not fitting:
                break
        self._counts["free_handed_over"] += len(fitting)
        left = list(waiting)
        others = self._fallback.fill([sentences[index] for index in left], advance)
        for index, given in zip(left, others, strict=True):
            fills[index] = [replace(fill, fallback=True) for fill in given]
        return fills

    def encode(self, sentences: Sequence[MaskedSentence]) -> list[EncodedSentence]:
        """The sentences as ``write`` takes them."""
        inputs = self._prompt.inputs([sentence.texts for sentence in sentences])
        return encode_sentences(self._language_model, sentences, inputs, following_words=0)

    def write(self, encoded: Sequence[EncodedSentence], attempt: int = 0) -> list[list[str] | None]:
        """The words that the model writes at the slots of each sentence, ``None`` where it writes another sentence.

        Attempt 0 writes the likeliest piece every time, the others draw pieces.
        """
        return [words for words, _ in self._write(encoded, attempt)]

    def pieces(self, encoded: Sequence[EncodedSentence]) -> list[list[int]]:
        """What the model writes at attempt 0, piece by piece: each sentence to its end, or to where it is given up."""
        return [written for _, written in self._write(encoded, 0)]

    def _write(self, encoded: Sequence[EncodedSentence], attempt: int) -> list[_Written]:
        result: dict[int, _Written] = {}
        for batch in self._batches(list(enumerate(encoded))):
            parts = self._halving.run(
                batch, lambda part: self._write_batch([item for _, item in part], attempt), self._kept_pieces
            )
            indices = (index for index, _ in batch)
            result |= zip(indices, (written for part in parts for written in part), strict=True)
        return [result[index] for index in range(len(encoded))]

    def _longest(self, encoded: EncodedSentence) -> int:
        return sum(map(len, encoded.known)) + _SPARE_PIECES * (1 + len(encoded.sentence.slots))

    def _fits(self, encoded: EncodedSentence) -> bool:
        need = len(self._prompt.head) + len(encoded.input) + self._longest(encoded)
        # A guess is read before it is known to be wrong.
        return need + max(map(len, encoded.known)) <= self._language_model.positions

    def _kept_pieces(self, batch: Sequence[tuple[int, EncodedSentence]]) -> int:
        return len(batch) * max(len(self._prompt.head) + encoded.length for _, encoded in batch)

    def _batches(self, items: list[tuple[int, EncodedSentence]]) -> Iterator[list[tuple[int, EncodedSentence]]]:
        """Sentences of about equal length together."""
        items.sort(key=lambda item: item[1].length)
        most = max(_MOST_KEPT_PIECES, self._language_model.pieces_in_gpu)

        def fits(batch: list[tuple[int, EncodedSentence]], item: tuple[int, EncodedSentence]) -> bool:
            full = len(batch) == self._settings.batch_sentences
            enough = len(batch) * item[1].length >= _ENOUGH_READS * self._language_model.enough_pieces
            wasteful = enough and item[1].length > _MOST_PADDING * batch[0][1].length
            return not full and not wasteful and self._kept_pieces([*batch, item]) <= most

        return batches_that_fit(items, fits)

    def _write_batch(self, batch: Sequence[EncodedSentence], attempt: int) -> list[_Written]:
        head = CausalRows(self._language_model, 1, self._clock)
        head.read([self._prompt.head[:-1]], [0])
        rows = head.chosen([0] * len(batch))
        everything = [
            _Writing(
                encoded,
                Alignment(encoded.sentence.texts),
                attempt,
                [*self._prompt.head[-1:], *encoded.input],
                [],
                self._longest(encoded),
            )
            for encoded in batch
        ]
        active = everything
        while active:
            guesses = [[] if state.done else state.guess() for state in active]
            pieces = [[*state.unread, *guess] for state, guess in zip(active, guesses, strict=True)]
            wanted = [0 if state.done else 1 + len(guess) for state, guess in zip(active, guesses, strict=True)]
            scores = rows.read(pieces, wanted)  # (sum, V)
            best = scores.argmax(dim=1).tolist() if attempt == 0 else []
            start = 0
            in_vain = []
            for state, guess, count in zip(active, guesses, wanted, strict=True):
                right = self._take(state, guess, scores[start : start + count], best[start : start + count])
                in_vain.append(len(guess) - right)
                start += count
            rows.take_back(in_vain)
            going_on = [row for row, state in enumerate(active) if not state.done]
            if len(going_on) <= 0.75 * len(active):
                rows = rows.chosen(going_on)
                active = [active[row] for row in going_on]
        return [(state.words, state.written) for state in everything]

    def _take(self, state: _Writing, guess: list[int], scores: torch.Tensor, best: list[int]) -> int:
        """Take the guessed pieces that the model writes, and the piece it writes next; returns how many were right."""
        if state.done:
            return 0
        right = 0
        while True:
            piece = best[right] if state.attempt == 0 else self._draw(state, scores[right])
            if right == len(guess) or piece != guess[right]:
                break
            self._copy(state, piece)
            right += 1
        self._write_own(state, piece)
        return right

    def _copy(self, state: _Writing, piece: int) -> None:
        """A known piece."""
        if state.position == len(state.encoded.known[state.segment]):
            # The guess was made within a slot, and its word was complete.
            state.segment, state.position, state.begun = state.segment + 1, 0, False
        state.written.append(piece)
        state.position += 1

    def _write_own(self, state: _Writing, piece: int) -> None:
        """A piece of the model's own."""
        known = state.encoded.known[state.segment]
        if state.position < len(known):
            state.astray = True
        elif state.segment + 1 < len(state.encoded.known):
            state.begun = True
            # Between two slots without known text nothing says where one word ends.
            state.astray = state.astray or not state.encoded.known[state.segment + 1]
        state.unread = [piece]
        state.written.append(piece)
        at_end = piece == self._language_model.end
        text = self._language_model.decode(state.written)
        sentence, line_end, _ = text.partition("\n")
        if at_end or line_end or len(state.written) >= state.longest:
            state.done, state.unread = True, []
            state.words = state.alignment.words(sentence)
        elif not state.alignment.is_possible(sentence):
            state.done, state.unread = True, []

    def _draw(self, state: _Writing, scores: torch.Tensor) -> int:
        """A piece by chance; the same for a seed, sentence, attempt and position, whatever else is in the batch."""
        sentence = state.encoded.sentence
        place = Place(sentence.number, sentence.slots[0].first_marker)
        generator = self._randomness.at(place, stream=_STREAM + state.attempt, step=len(state.written))
        weights = torch.softmax(scores.double() / self._settings.temperature, dim=0).cpu().numpy()
        clocks = generator.standard_exponential(weights.size)
        return int(np.argmax(weights / np.maximum(clocks, np.finfo(np.float64).tiny)))
