"""Constrained filling with a causal LM: the known words are forced, and the model writes only at the markers.

Slots are filled from left to right. For each slot the model reads the text before it, then candidates with the first
known words after it (``candidates``). A model tuned on prompts also sees the whole masked sentence in its prompt.

Of a sentence with more pieces than the model has positions, only the text nearest to the slot is read, without a
prompt.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tasks.batches import batches_that_fit
from tasks.corpora.words import fold
from tasks.errors import ModelError
from tasks.filling.causal_lm.candidates import (
    LONGEST_WORD,
    BestWords,
    Candidate,
    DrawnWords,
    SlotContext,
    candidates_of_slots,
)
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.causal_lm.prompts import CausalPrompt, EncodedSentence, encode_sentences
from tasks.filling.causal_lm.read_texts import ReadTexts
from tasks.filling.causal_lm.words import CausalWords, WordsOfKinds
from tasks.filling.fill_words import fits, unwanted, wanted
from tasks.filling.filled_lines import Kinds
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.unigram_filler import UnigramFiller

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.settings import CandidateMethod

_CACHED_PIECES = 8192
_CACHED_BYTES = 1 << 29
"""Limits of the cache, candidates included: a number of pieces, or the pieces that fit this memory if those are more.
Long sentences get smaller batches. A small model and a GPU get larger ones."""


@dataclass
class _Progress:
    """State of a sentence during filling."""

    encoded: EncodedSentence
    written: list[int]
    """Pieces of the sentence up to the next slot."""
    fills: list[Fill] = field(default_factory=list)

    @property
    def slot(self) -> SlotContext:
        index, encoded = len(self.fills), self.encoded
        slot = encoded.sentence.slots[index]
        return SlotContext(
            Place(encoded.sentence.number, slot.first_marker),
            encoded.spaced[index],
            encoded.following[index],
            wanted(encoded.sentence, index),
            slot.kind,
        )


class ConstrainedFiller:
    """Filler for sentences, with one causal LM and one method."""

    def __init__(
        self,
        language_model: CausalLanguageModel,
        settings: "CandidateMethod",
        allowed_words: AllowedWords,
        randomness: MarkerRandomness,
        known: WordFrequencies | None = None,
        *,
        kinds: Kinds | None = None,
        beyond: UnigramFiller | None = None,
        word_factors: Mapping[str, float] | None = None,
    ) -> None:
        """``known``: words of a word list. ``kinds``: of slots; ``beyond`` draws a word of a language if the model
        finds none. ``word_factors``: from folded words to terms for scores, in nats."""
        size = language_model.model.get_output_embeddings().weight.shape[0]
        words = CausalWords.of(
            language_model.tokenizer, size, name=language_model.name, known_words=known.folded if known else None
        )
        settings.check_words(np.ones(len(words.candidates), dtype=bool))
        self._words = WordsOfKinds(words, known, kinds)
        self._language_model, self._settings = language_model, settings
        self._follows_classes = kinds is not None and beyond is None
        self._beyond, self._allowed_words, self._randomness = beyond, allowed_words, randomness
        self._prompt = CausalPrompt(language_model, language_model.instruction)
        self._count = max(settings.right_context.candidates, settings.fewest_candidates)
        self._factors, self._least = word_factors, min(word_factors.values()) if word_factors else 0.0
        self._search: BestWords | DrawnWords = BestWords(self._words, self._count)
        if settings.drawn_at is not None:
            drawn = (allowed_words, randomness, settings.drawn_at, word_factors)
            self._search = DrawnWords(self._words, self._count, *drawn)
        self.is_cased = words.candidates.cased
        """Whether the model writes capital letters."""
        self.candidate_count = len(words.candidates)
        """Number of words of one piece; words of several pieces are not included."""
        self._unwanted = unwanted(words.candidates.words)
        in_memory = language_model.pieces_in_gpu or _CACHED_BYTES // language_model.bytes_per_piece
        self._most_cached_pieces = max(_CACHED_PIECES, in_memory)
        self._halving = BatchHalving(language_model.name)
        self._counts = Counter(windowed_slots=0, **({} if beyond is None else {"beyond_vocabulary": 0}))

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._language_model.seconds

    @property
    def counts(self) -> dict[str, int]:
        """Counts for a report. ``windowed_slots`` were filled with a part of the sentence as context,
        ``beyond_vocabulary`` by word frequency."""
        return {**self._counts, **self._halving.counts}

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        with_slots = [index for index, sentence in enumerate(sentences) if sentence.slots]
        encoded = encode_sentences(
            self._language_model,
            self._prompt,
            [sentences[index] for index in with_slots],
            following_words=self._settings.right_context.words,
        )
        fills: list[list[Fill]] = [[] for _ in sentences]
        batches = batches_that_fit(
            sorted(zip(with_slots, encoded, strict=True), key=lambda item: item[1].length),
            lambda batch, item: (
                len(batch) < self._settings.batch_sentences
                and self._cached_pieces([*batch, item]) <= self._most_cached_pieces
            ),
        )
        for batch in batches:
            parts = self._halving.run(batch, lambda part: self._fill_batch([each for _, each in part], advance))
            found = (its_fills for part in parts for its_fills in part)
            for (index, _), its_fills in zip(batch, found, strict=True):
                fills[index] = its_fills
        return fills

    def _cached_pieces(self, batch: Sequence[tuple[int, EncodedSentence]]) -> int:
        """Maximum number of pieces in the cache of a batch."""
        longest = min(max(encoded.length for _, encoded in batch), self._language_model.positions)
        return len(batch) * (1 + self._count) * (longest + len(self._prompt.head))

    def _fill_batch(self, sentences: Sequence[EncodedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        states = [_Progress(encoded, [*encoded.known[0]]) for encoded in sentences]
        active = states
        while active:
            slots = [state.slot for state in active]
            read = ReadTexts(self._language_model, list(map(self._left, active, slots)))
            found = candidates_of_slots(read, slots, self._words, self._search)
            for state, slot, candidates, scores in zip(active, slots, found, read.scores, strict=True):
                chosen, fallback = self._choose(candidates, slot, scores.cpu().numpy())
                state.fills.append(Fill(chosen.word, fallback))
                state.written += [*chosen.pieces, *state.encoded.known[len(state.fills)]]
            advance(len(active))
            active = [state for state in active if len(state.fills) < len(state.encoded.sentence.slots)]
        return [state.fills for state in states]

    def _choose(self, candidates: list[Candidate], slot: SlotContext, scores: np.ndarray) -> tuple[Candidate, bool]:
        """The candidate that the method chooses, and whether it is a fallback."""
        candidates = [candidate for candidate in candidates if fits(candidate.word, slot.want)]
        if not candidates and self._follows_classes:
            candidates = self._words_of_one_piece(slot, scores)
        if candidates:
            return self._by_method(candidates, slot)
        if self._beyond is not None:
            # A word of the language by frequency, not on the list.
            self._counts["beyond_vocabulary"] += 1
            word = self._beyond.draw(slot.place, slot.want, slot.kind).word
            return Candidate(word, tuple(self._language_model.encode([" " * slot.spaced + word])[0]), 0.0), False
        candidates = self._words_of_one_piece(slot, scores)
        return next((each for each in candidates if not self._allowed_words.holds(each.word)), candidates[0]), True

    def _by_method(self, candidates: list[Candidate], slot: SlotContext) -> tuple[Candidate, bool]:
        scores = [candidate.score for candidate in candidates]
        if self._factors is not None:
            temperature = self._settings.drawn_at or 1.0
            factors = [self._factors.get(fold(candidate.word), self._least) for candidate in candidates]
            scores = [score + temperature * factor for score, factor in zip(scores, factors, strict=True)]
        off_list = self._allowed_words.off_list([candidate.word for candidate in candidates], slot.kind)
        random = self._randomness.at(slot.place)
        chosen, fallback = self._settings.choose(np.array(scores, dtype=np.float32), off_list, random)
        return candidates[chosen], fallback

    def _words_of_one_piece(self, slot: SlotContext, scores: np.ndarray) -> list[Candidate]:
        """All words of one piece, the likeliest first by the ``(V,)`` scores of their pieces."""
        whole = self._words[slot.kind].whole[slot.spaced]
        if not (whole >= 0).any():
            whole = self._words[None].whole[slot.spaced]
        entries = np.flatnonzero(whole >= 0)
        fitting = entries[~np.isin(whole[entries], self._unwanted[slot.want])]
        entries = fitting if fitting.size else entries
        if not entries.size:
            name = self._language_model.name
            raise ModelError(
                f"line {slot.place.line}: filler {name!r} has no word that fits a marker; use another filler"
            )
        texts = self._words[None].candidates.words
        order = entries[np.argsort(-scores[entries], kind="stable")].tolist()
        return [Candidate(texts[whole[entry]], (entry,), float(scores[entry])) for entry in order]

    def _left(self, state: _Progress, slot: SlotContext) -> list[int]:
        """The pieces before a slot: prompt and sentence, or as much of the sentence before the slot as fits."""
        pieces = [*self._prompt.head, *state.encoded.input, *state.written]
        room = self._language_model.positions - LONGEST_WORD - len(slot.following)
        if len(pieces) <= room:
            return pieces
        self._counts["windowed_slots"] += 1
        return [*self._prompt.head[:1], *state.written[1 - max(room, 2) :]]


def constrained_filler(prepared: "PreparedFill", method: "CandidateMethod") -> tuple[ConstrainedFiller, Casing]:
    """The filler for a fill by a causal language model with forced known words, and its casing."""
    words, languages = prepared.words, prepared.learned.languages
    counts, beyond = words.counts, None
    if counts and languages:
        beyond = UnigramFiller(words.off_list(counts, languages), prepared.randomness)
    filler = ConstrainedFiller(
        words.opened.causal,
        method,
        words.allowed_words,
        prepared.randomness,
        counts,
        kinds=prepared.kinds if counts else None,
        beyond=beyond,
        word_factors=prepared.learned.word_factors,
    )
    return filler, words.casing(is_cased=filler.is_cased)
