"""Free filling with a causal LM, as in the paper (3.2): the model gets the prompt and writes the whole sentence.

A model may change words that it should copy, or write none or two at a marker. ``Alignment`` compares every sentence
with its masked form. A sentence that fails is written again by sampling, and finally filled by another method. A report
counts these cases.

The output equals decoding piece by piece, but most pieces are guessed. The model reads the known text after a word in
one pass (speculative decoding). Pieces that the model would have written are accepted. At the first difference the
model's piece is taken, and the rest of the guess is taken back. So a sentence takes about as many passes as it has
markers. A sentence that no longer matches its masked form is given up at once.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import regex
import torch

from tasks.batches import batches_that_fit
from tasks.corpora.masked_text import MASK
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.prompts import INSTRUCTION, CausalPrompt, EncodedSentence, encode_sentences
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
    """Comparison of texts with one masked sentence.

    A sentence matches if every known character is unchanged (white space may differ) and each marker has one word. The
    rules for words are in ``candidate_words``. The marker's own name is no word, since models copy it.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """``texts``: the ``n + 1`` known texts around ``n`` slots."""
        inside = list(texts)
        inside[0] = inside[0].lstrip()
        inside[-1] = inside[-1].rstrip()
        known = [r"\s+".join(map(regex.escape, regex.split(r"\s+", text))) for text in inside]
        # Not a lazy repetition: with one, regex finds a partial match in any text.
        self._pattern = regex.compile(r"\s*" + rf"(\S{{1,{_LONGEST_FILL}}})".join(known) + r"\s*")

    def words(self, text: str) -> list[str] | None:
        """The words at the slots, or ``None`` if the text is another sentence or has no word at a slot."""
        match = self._pattern.fullmatch(text)
        if match is None or not all(is_word(word) and MASK not in word for word in match.groups()):
            return None
        return list(match.groups())

    def is_possible(self, text: str) -> bool:
        """Whether a continuation of the text can still match the sentence."""
        return self._pattern.fullmatch(text.rstrip(_UNFINISHED), partial=True) is not None


_MOST_CACHED_PIECES = 16384
_ENOUGH_READS = 4
"""A batch is large if its prompts have this multiple of ``enough_pieces``. Decoding after the prompts needs large
batches."""
_MOST_PADDING = 1.25
"""A large batch ends before a prompt that is longer than its first by more than this factor."""
_SPARE_PIECES = 8
"""Pieces that a sentence may have beyond its known text: this number for each slot, and once more."""
_STREAM = 1 << 24
"""First random stream of further attempts; lower streams belong to ``candidates``."""


@dataclass
class _Writing:
    """State of a sentence during writing."""

    encoded: EncodedSentence
    alignment: Alignment
    unread: list[int]
    """Pieces of the prompt or of the sentence that the model has not read."""
    written: list[int] = field(default_factory=list)
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
        if self.done or self.astray:
            return []
        if self.position < len(known[self.segment]):
            return known[self.segment][self.position :]
        # In a slot: guess that its word is complete.
        return known[self.segment + 1] if self.begun else []

    def copy(self, piece: int) -> None:
        """Append a known piece."""
        if self.position == len(self.encoded.known[self.segment]):
            # The guess was made in a slot, and its word was complete.
            self.segment, self.position, self.begun = self.segment + 1, 0, False
        self.written.append(piece)
        self.position += 1

    def write(self, piece: int) -> None:
        """Append a piece that was not guessed."""
        known = self.encoded.known
        if self.position < len(known[self.segment]):
            self.astray = True
        elif self.segment + 1 < len(known):
            self.begun = True
            # Without known text between two slots, the end of the first word is unknown.
            self.astray = self.astray or not known[self.segment + 1]
        self.unread = [piece]
        self.written.append(piece)


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
        names = ("free_sentences", "free_malformed", "free_rewritten", "free_handed_over", "free_too_long")
        self._counts = dict.fromkeys(names, 0)

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._clock.seconds + (self._fallback.forward_seconds or 0.0)

    @property
    def counts(self) -> dict[str, int]:
        """Counts for a report. Of all ``free_sentences``, the ``free_malformed`` ones failed the first attempt. A later
        attempt succeeded for ``free_rewritten`` of these; ``free_handed_over`` went to the fallback. The
        ``free_too_long`` ones went there without an attempt."""
        own = Counter({**self._counts, "pieces_read": self._clock.pieces, **self._halving.counts})
        own.update(getattr(self._fallback, "counts", {}))
        return own

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        fills: list[list[Fill]] = [[] for _ in sentences]
        with_slots = [index for index, sentence in enumerate(sentences) if sentence.slots]
        waiting = dict(zip(with_slots, self.encode([sentences[index] for index in with_slots]), strict=True))
        fitting = {index: encoded for index, encoded in waiting.items() if self._fits(encoded)}
        self._counts["free_sentences"] += len(waiting)
        self._counts["free_too_long"] += len(waiting) - len(fitting)
        for attempt in range(1 + self._settings.attempts):
            if not fitting:
                break
            written = self.write(list(fitting.values()), attempt)
            for index, (words, _) in zip(list(fitting), written, strict=True):
                if words is None:
                    continue
                fills[index] = [Fill(word) for word in words]
                advance(len(words))
                self._counts["free_rewritten"] += attempt > 0
                del fitting[index], waiting[index]
            if attempt == 0:
                self._counts["free_malformed"] += len(fitting)
        self._counts["free_handed_over"] += len(fitting)
        others = self._fallback.fill([sentences[index] for index in waiting], advance)
        for index, given in zip(waiting, others, strict=True):
            fills[index] = [replace(fill, fallback=True) for fill in given]
        return fills

    def encode(self, sentences: Sequence[MaskedSentence]) -> list[EncodedSentence]:
        """The sentences in the form for ``write``."""
        return encode_sentences(self._language_model, self._prompt, sentences, following_words=0)

    def write(self, encoded: Sequence[EncodedSentence], attempt: int = 0) -> list[tuple[list[str] | None, list[int]]]:
        """The words that the model writes at the slots of each sentence, or ``None`` if it writes another sentence;
        and all pieces that it writes, to the end of the sentence or until it is given up.

        Attempt 0 takes the likeliest piece every time. Later attempts sample pieces.
        """
        result: dict[int, tuple[list[str] | None, list[int]]] = {}
        most = max(_MOST_CACHED_PIECES, self._language_model.pieces_in_gpu)

        def fits(batch: list[tuple[int, EncodedSentence]], item: tuple[int, EncodedSentence]) -> bool:
            """Whether a batch of sentences of similar length takes one more."""
            enough = len(batch) * item[1].length >= _ENOUGH_READS * self._language_model.enough_pieces
            wasteful = enough and item[1].length > _MOST_PADDING * batch[0][1].length
            full = len(batch) == self._settings.batch_sentences
            return not full and not wasteful and self._cached_pieces([*batch, item]) <= most

        for batch in batches_that_fit(sorted(enumerate(encoded), key=lambda item: item[1].length), fits):
            parts = self._halving.run(
                batch, lambda part: self._write_batch([item for _, item in part], attempt), self._cached_pieces
            )
            result |= zip((index for index, _ in batch), (written for part in parts for written in part), strict=True)
        return [result[index] for index in range(len(encoded))]

    def _longest(self, encoded: EncodedSentence) -> int:
        return sum(map(len, encoded.known)) + _SPARE_PIECES * (1 + len(encoded.sentence.slots))

    def _fits(self, encoded: EncodedSentence) -> bool:
        need = len(self._prompt.head) + len(encoded.input) + self._longest(encoded)
        # A wrong guess takes positions, too.
        return need + max(map(len, encoded.known)) <= self._language_model.positions

    def _cached_pieces(self, batch: Sequence[tuple[int, EncodedSentence]]) -> int:
        return len(batch) * max(len(self._prompt.head) + encoded.length for _, encoded in batch)

    def _write_batch(self, batch: Sequence[EncodedSentence], attempt: int) -> list[tuple[list[str] | None, list[int]]]:
        head = CausalRows(self._language_model, 1, self._clock)
        head.read([self._prompt.head[:-1]], [0])
        rows = head.chosen([0] * len(batch))
        states = [
            _Writing(encoded, Alignment(encoded.sentence.texts), [*self._prompt.head[-1:], *encoded.input])
            for encoded in batch
        ]
        active = states
        while active:
            guesses = [state.guess() for state in active]
            wanted = [0 if state.done else 1 + len(guess) for state, guess in zip(active, guesses, strict=True)]
            pieces = [[*state.unread, *guess] for state, guess in zip(active, guesses, strict=True)]
            scores = rows.read(pieces, wanted)  # (sum, V)
            best = scores.argmax(dim=1).tolist() if attempt == 0 else []
            start = 0
            in_vain = []
            for state, guess, count in zip(active, guesses, wanted, strict=True):
                right = 0
                while not state.done:
                    at = start + right
                    piece = best[at] if attempt == 0 else self._draw(state, scores[at], attempt)
                    if right == len(guess) or piece != guess[right]:
                        state.write(piece)
                        self._end(state, piece)
                        break
                    state.copy(piece)
                    right += 1
                in_vain.append(len(guess) - right)
                start += count
            rows.take_back(in_vain)
            going_on = [row for row, state in enumerate(active) if not state.done]
            if len(going_on) <= 0.75 * len(active):
                rows, active = rows.chosen(going_on), [active[row] for row in going_on]
        return [(state.words, state.written) for state in states]

    def _end(self, state: _Writing, piece: int) -> None:
        """End a sentence that is complete, or that no longer matches."""
        sentence, line_end, _ = self._language_model.decode(state.written).partition("\n")
        complete = piece == self._language_model.end or line_end or len(state.written) >= self._longest(state.encoded)
        if complete:
            state.words = state.alignment.words(sentence)
        if complete or not state.alignment.is_possible(sentence):
            state.done, state.unread = True, []

    def _draw(self, state: _Writing, scores: torch.Tensor, attempt: int) -> int:
        """A sampled piece. It depends on the seed, sentence, attempt and position, not on the rest of the batch."""
        sentence = state.encoded.sentence
        place = Place(sentence.number, sentence.slots[0].first_marker)
        generator = self._randomness.at(place, stream=_STREAM + attempt, step=len(state.written))
        weights = torch.softmax(scores.double() / self._settings.temperature, dim=0).cpu().numpy()
        clocks = generator.standard_exponential(weights.size)
        return int(np.argmax(weights / np.maximum(clocks, np.finfo(np.float64).tiny)))
