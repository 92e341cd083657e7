"""Free filling with a causal LM, as in the paper (3.2): the model gets the prompt and writes the whole sentence.

A model may change words that it should copy, or write none or two at a marker. ``Alignment`` compares every sentence
with its masked form. A sentence that fails is written again by sampling, and finally filled by another method. A report
counts these cases.

The output equals decoding piece by piece, but most pieces are guessed. The model reads the known text after a word in
one pass (speculative decoding). Pieces that the model would have written are accepted. At the first difference the
model's piece is taken, and the rest of the guess is taken back. So a sentence takes about as many passes as it has
markers. A sentence that no longer matches its masked form is given up at once.

A sentence matches if every known character is unchanged (white space may differ) and each marker has one word. The
rules for words are in ``candidate_words``. The marker's own name is no word, since models copy it.
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
from tasks.filling.filled_lines import Filler
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import is_word
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_sentence import Fill, MaskedSentence
from tasks.filling.methods.free import Free

_LONGEST_FILL = 40
_UNFINISHED = "\ufffd"
"""The decoded text of the first bytes of a character."""


class Alignment:
    """Comparison of texts with one masked sentence."""

    def __init__(self, texts: Sequence[str]) -> None:
        """``texts``: the ``n + 1`` known texts around ``n`` slots."""
        # Not a lazy repetition: with one, regex finds a partial match in any text.
        slot = rf"(\S{{1,{_LONGEST_FILL}}})"
        self._pattern = regex.compile(r"\s*" + slot.join(map(_known, _stripped(texts))) + r"\s*")

    def words(self, text: str) -> list[str] | None:
        """The words at the slots, or ``None`` if the text is another sentence or has no word at a slot."""
        match = self._pattern.fullmatch(text)
        if match is None or not all(is_word(word) and MASK not in word for word in match.groups()):
            return None
        return list(match.groups())

    def is_possible(self, text: str) -> bool:
        """Whether a continuation of the text can still match the sentence."""
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


_MOST_CACHED_PIECES = 16384
_ENOUGH_READS = 4
"""A batch is large if its prompts have this multiple of ``enough_pieces``. Decoding after the prompts needs large
batches."""
_MOST_PADDING = 1.25
"""A large batch ends before a prompt that is longer than its first by more than this factor."""
_SPARE_PIECES = 8
"""Pieces that a sentence may have beyond its known text: this number for each slot, and once more."""
_Written = tuple[list[str] | None, list[int]]
"""The words of a sentence, or ``None`` if it does not match, and all written pieces."""
_STREAM = 1 << 24
"""First random stream of further attempts; lower streams belong to ``candidates``."""


@dataclass
class _Writing:
    """State of a sentence during writing."""

    encoded: EncodedSentence
    alignment: Alignment
    attempt: int
    unread: list[int]
    """Pieces of the prompt or of the sentence that the model has not read."""
    written: list[int]
    longest: int
    """Maximum number of pieces."""
    segment: int = 0
    """Index of the known text that comes next, or that precedes the current slot."""
    position: int = 0
    """Number of pieces of this known text that are written."""
    astray: bool = False
    """Whether the pieces differ from the expected ones. The text may be equal, but guessing stops."""
    begun: bool = False
    """Whether the slot after the known text has a piece."""
    done: bool = False
    words: list[str] | None = None

    def guess(self) -> list[int]:
        """The next pieces if the model copies the known text."""
        known = self.encoded.known
        if self.astray:
            return []
        if self.position < len(known[self.segment]):
            return known[self.segment][self.position :]
        # In a slot: guess that its word is complete.
        return known[self.segment + 1] if self.begun else []


class FreeFiller:
    """Filler for sentences that lets one causal LM write them whole."""

    def __init__(
        self,
        language_model: CausalLanguageModel,
        settings: Free,
        randomness: MarkerRandomness,
        fallback: Filler,
    ) -> None:
        """``fallback`` fills the sentences that fail every attempt."""
        self._language_model, self._settings = language_model, settings
        self._randomness, self._fallback = randomness, fallback
        self._prompt = CausalPrompt(language_model, language_model.instruction or INSTRUCTION)
        self._clock = ForwardClock()
        self._halving = BatchHalving(language_model.name)
        self.candidate_count = fallback.candidate_count
        """Number of words that the fallback chooses from; the model may write any word."""
        self._counts = dict.fromkeys(
            ("free_sentences", "free_malformed", "free_rewritten", "free_handed_over", "free_too_long"), 0
        )

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._clock.seconds + (self._fallback.forward_seconds or 0.0)

    @property
    def counts(self) -> dict[str, int]:
        """Counts for a report. Of all ``free_sentences``, the ``free_malformed`` ones failed the first attempt. A later
        attempt succeeded for ``free_rewritten`` of these; ``free_handed_over`` went to the fallback. The
        ``free_too_long`` ones went there without an attempt."""
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
        """The sentences in the form for ``write``."""
        inputs = self._prompt.inputs([sentence.texts for sentence in sentences])
        return encode_sentences(self._language_model, sentences, inputs, following_words=0)

    def write(self, encoded: Sequence[EncodedSentence], attempt: int = 0) -> list[list[str] | None]:
        """The words that the model writes at the slots of each sentence, or ``None`` if it writes another sentence.

        Attempt 0 takes the likeliest piece every time. Later attempts sample pieces.
        """
        return [words for words, _ in self._write(encoded, attempt)]

    def pieces(self, encoded: Sequence[EncodedSentence]) -> list[list[int]]:
        """The pieces that the model writes at attempt 0: each sentence to its end, or until it is given up."""
        return [written for _, written in self._write(encoded, 0)]

    def _write(self, encoded: Sequence[EncodedSentence], attempt: int) -> list[_Written]:
        result: dict[int, _Written] = {}
        for batch in self._batches(list(enumerate(encoded))):
            parts = self._halving.run(
                batch, lambda part: self._write_batch([item for _, item in part], attempt), self._cached_pieces
            )
            indices = (index for index, _ in batch)
            result |= zip(indices, (written for part in parts for written in part), strict=True)
        return [result[index] for index in range(len(encoded))]

    def _longest(self, encoded: EncodedSentence) -> int:
        return sum(map(len, encoded.known)) + _SPARE_PIECES * (1 + len(encoded.sentence.slots))

    def _fits(self, encoded: EncodedSentence) -> bool:
        need = len(self._prompt.head) + len(encoded.input) + self._longest(encoded)
        # A wrong guess takes positions, too.
        return need + max(map(len, encoded.known)) <= self._language_model.positions

    def _cached_pieces(self, batch: Sequence[tuple[int, EncodedSentence]]) -> int:
        return len(batch) * max(len(self._prompt.head) + encoded.length for _, encoded in batch)

    def _batches(self, items: list[tuple[int, EncodedSentence]]) -> Iterator[list[tuple[int, EncodedSentence]]]:
        """Batches of sentences of similar length."""
        items.sort(key=lambda item: item[1].length)
        most = max(_MOST_CACHED_PIECES, self._language_model.pieces_in_gpu)

        def fits(batch: list[tuple[int, EncodedSentence]], item: tuple[int, EncodedSentence]) -> bool:
            full = len(batch) == self._settings.batch_sentences
            enough = len(batch) * item[1].length >= _ENOUGH_READS * self._language_model.enough_pieces
            wasteful = enough and item[1].length > _MOST_PADDING * batch[0][1].length
            return not full and not wasteful and self._cached_pieces([*batch, item]) <= most

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
        """Accept the guessed pieces that the model writes, and its next piece. Returns the number of right guesses."""
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
        """Append a known piece."""
        if state.position == len(state.encoded.known[state.segment]):
            # The guess was made in a slot, and its word was complete.
            state.segment, state.position, state.begun = state.segment + 1, 0, False
        state.written.append(piece)
        state.position += 1

    def _write_own(self, state: _Writing, piece: int) -> None:
        """Append a piece that was not guessed."""
        known = state.encoded.known[state.segment]
        if state.position < len(known):
            state.astray = True
        elif state.segment + 1 < len(state.encoded.known):
            state.begun = True
            # Without known text between two slots, the end of the first word is unknown.
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
        """A sampled piece. It depends on the seed, sentence, attempt and position, not on the rest of the batch."""
        sentence = state.encoded.sentence
        place = Place(sentence.number, sentence.slots[0].first_marker)
        generator = self._randomness.at(place, stream=_STREAM + state.attempt, step=len(state.written))
        weights = torch.softmax(scores.double() / self._settings.temperature, dim=0).cpu().numpy()
        clocks = generator.standard_exponential(weights.size)
        return int(np.argmax(weights / np.maximum(clocks, np.finfo(np.float64).tiny)))
