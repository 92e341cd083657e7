"""Constrained filling with a causal LM: the known words are forced, and the model writes only at the markers.

Slots are filled from left to right. Keys and values are cached, so each sentence is read once. A slot costs only the
text since the slot before and its candidates. The right context counts through the score of its first known words after
each candidate (``candidates``). A model tuned on prompts also sees the whole masked sentence in its prompt.

A sentence with more pieces than the model has positions is read through a window: the text nearest to the slot, cut
between words.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from tasks.batches import batches_that_fit
from tasks.corpora.words import fold
from tasks.errors import ModelError
from tasks.filling.causal_lm.candidates import (
    LONGEST_WORD,
    BestWords,
    Candidate,
    DrawnWords,
    SlotContext,
    WayOfLooking,
    candidates_of_slots,
)
from tasks.filling.causal_lm.language_model import (
    MARKER,
    CausalLanguageModel,
    CausalPrompt,
    CausalWords,
    EncodedSentence,
    encode_sentences,
)
from tasks.filling.causal_lm.rows import CausalRows, ForwardClock, joined, length_groups
from tasks.filling.causal_lm.word_kinds import Kind, WordsOfKinds
from tasks.filling.fill_words import fits, unwanted, wanted
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.marker_scores import BatchHalving
from tasks.filling.masked_sentence import Casing, Fill, MaskedSentence
from tasks.filling.methods.unigram import UnigramFiller
from tasks.filling.prepared_fill import Learned, PreparedFill
from tasks.filling.settings import CandidateMethod, ClassAware
from tasks.filling.surrogates.class_check import ClassWords, kinds_of_slots

_CACHED_PIECES = 8192
_CACHED_BYTES = 1 << 29
"""Limits of the cache, candidates included: a number of pieces, or the pieces that fit this memory if those are more.
Long sentences get smaller batches. A small model and a GPU get larger ones."""
_WORDS = re.compile(r"\s*\S+|\s+$")


@dataclass
class _Progress:
    """State of a sentence during filling."""

    encoded: EncodedSentence
    pending: list[int]
    """Pieces that the model has not read yet."""
    fills: list[Fill] = field(default_factory=list)
    windowed: bool = False
    """Whether the model sees only a part of the sentence."""
    windowed_slots: int = 0
    kinds: Sequence[Kind] | None = None
    """Kind of each slot, if fills follow classes and forms."""

    @property
    def slot(self) -> SlotContext:
        index = len(self.fills)
        sentence = self.encoded.sentence
        place = Place(sentence.number, sentence.slots[index].first_marker)
        encoded, language = self.encoded, sentence.slots[index].language
        spaced, following = encoded.spaced[index], encoded.following[index]
        kind = self.kinds[index] if self.kinds else language
        return SlotContext(place, spaced, following, wanted(sentence, index), language, kind)

    @property
    def done(self) -> bool:
        return len(self.fills) == len(self.encoded.sentence.slots)


class ConstrainedFiller:
    """Filler for sentences, with one causal LM and one method."""

    def __init__(
        self,
        language_model: CausalLanguageModel,
        settings: CandidateMethod,
        allowed_words: AllowedWords,
        randomness: MarkerRandomness,
        known_words: Collection[str] | None = None,
        *,
        spoken: Mapping[str, Collection[str]] | None = None,
        beyond: UnigramFiller | None = None,
        learned: Learned | None = None,
        known: tuple[WordFrequencies, ClassWords] | None = None,
    ) -> None:
        """``known_words``: folded words of a word list, or ``None``. ``spoken``: allowed words of each language;
        ``beyond`` draws one if the model finds none. ``learned``: results of the method's ``learn``. ``known``: words
        of classes and forms, if fills follow them."""
        size = language_model.model.get_output_embeddings().weight.shape[0]
        words = CausalWords.of(language_model.tokenizer, size, name=language_model.name, known_words=known_words)
        self._words = WordsOfKinds(words, spoken or {}, known)
        self._language_model, self._settings, self._known = language_model, settings, known
        self._beyond, self._drawn_beyond = beyond, 0
        self._allowed_words, self._randomness = allowed_words, randomness
        self._prompt = CausalPrompt(language_model, language_model.instruction)
        self._clock = ForwardClock()
        self._count = max(settings.right_context.candidates, getattr(settings, "k", 1))
        settings.check_words(np.ones(len(words.candidates), dtype=bool))
        self._learned = learned or Learned()
        self._factors = self._learned.word_factors
        self._least = min(self._factors.values()) if self._factors else 0.0
        self._way: WayOfLooking = BestWords(self._words, self._count)
        if settings.drawn_at is not None:
            self._way = DrawnWords(
                self._words, self._count, allowed_words, randomness, settings.drawn_at, self._factors
            )
        self.is_cased = words.candidates.cased
        """Whether the model writes capital letters."""
        self.candidate_count = len(words.candidates)
        """Number of words of one piece; words of several pieces are not included."""
        self._unwanted = unwanted(words.candidates.words)
        self._windowed_slots = 0
        in_memory = language_model.pieces_in_gpu or _CACHED_BYTES // language_model.bytes_per_piece
        self._most_cached_pieces = max(_CACHED_PIECES, in_memory)
        self._halving = BatchHalving(language_model.name)

    @property
    def forward_seconds(self) -> float:
        """Seconds in the model so far."""
        return self._clock.seconds

    @property
    def counts(self) -> dict[str, int]:
        """Counts for a report. ``windowed_slots`` were filled with a part of the sentence as context,
        ``beyond_vocabulary`` by word frequency."""
        counts = {"windowed_slots": self._windowed_slots, "pieces_read": self._clock.pieces, **self._halving.counts}
        return counts if self._beyond is None else counts | {"beyond_vocabulary": self._drawn_beyond}

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot; ``advance`` is called with the number of slots just filled."""
        with_slots = [index for index, sentence in enumerate(sentences) if sentence.slots]
        chosen = [sentences[index] for index in with_slots]
        encoded = encode_sentences(
            self._language_model,
            chosen,
            self._prompt.inputs([sentence.texts for sentence in chosen]),
            following_words=self._settings.right_context.words,
        )
        fills: list[list[Fill]] = [[] for _ in sentences]

        def work(batch: Sequence[tuple[int, EncodedSentence]]) -> list[_Progress]:
            return self._fill_batch([self._begin(encoded) for _, encoded in batch], advance)

        for batch in self._batches(list(zip(with_slots, encoded, strict=True))):
            states = [state for part in self._halving.run(batch, work, self._cached_pieces) for state in part]
            for (index, _), state in zip(batch, states, strict=True):
                fills[index] = state.fills
                self._windowed_slots += state.windowed_slots
        return fills

    def _cached_pieces(self, batch: Sequence[tuple[int, EncodedSentence]]) -> int:
        """Maximum number of pieces in the cache of a batch."""
        longest = min(max(encoded.length for _, encoded in batch), self._language_model.positions)
        return len(batch) * (1 + self._count) * (longest + len(self._prompt.head))

    def _batches(self, encoded: list[tuple[int, EncodedSentence]]) -> Iterator[list[tuple[int, EncodedSentence]]]:
        """Batches of sentences of similar length."""
        encoded.sort(key=lambda item: item[1].length)
        return batches_that_fit(
            encoded,
            lambda batch, item: (
                len(batch) < self._settings.batch_sentences
                and self._cached_pieces([*batch, item]) <= self._most_cached_pieces
            ),
        )

    def _begin(self, encoded: EncodedSentence) -> _Progress:
        following = encoded.following
        if self._prompt.end and self._settings.right_context.words:
            # The model was tuned to mark the end of a sentence.
            following = [
                pieces + (self._prompt.end if index == len(following) - 1 and pieces == encoded.known[-1] else [])
                for index, pieces in enumerate(following)
            ]
        kinds = kinds_of_slots(encoded.sentence, self._known[1].forms) if self._known is not None else None
        return _Progress(replace(encoded, following=following), [*encoded.input, *encoded.known[0]], kinds=kinds)

    def _fill_batch(self, states: list[_Progress], advance: Callable[[int], object]) -> list[_Progress]:
        head = CausalRows(self._language_model, 1, self._clock)
        head_is_read = len(self._prompt.head) > 1
        if head_is_read:
            # The last piece of the head is read with each sentence, so that every row has a piece to read.
            head.read([self._prompt.head[:-1]], [0])
        rows = head.chosen([0] * len(states))
        for state in states:
            state.pending = [*self._prompt.head[-1 if head_is_read else 0 :], *state.pending]
        active = list(range(len(states)))
        while active:
            here = [states[index] for index in active]
            self._make_room(rows, here)
            rows, scores, order = self._read(rows, [state.pending for state in here])  # (B, V)
            active = [active[row] for row in order]
            here = [here[row] for row in order]
            slots = [state.slot for state in here]
            found = candidates_of_slots(rows, scores, slots, self._words, self._way)
            for row, (state, slot, candidates) in enumerate(zip(here, slots, found, strict=True)):
                chosen, fallback = self._choose(candidates, slot, scores[row].cpu().numpy())
                state.fills.append(Fill(chosen.word, fallback))
                state.pending = [*chosen.pieces, *state.encoded.known[len(state.fills)]]
                state.windowed_slots += state.windowed
            advance(len(here))
            unfinished = [row for row, state in enumerate(here) if not state.done]
            if len(unfinished) < len(here):
                rows = rows.chosen(unfinished)
                active = [active[row] for row in unfinished]
        return states

    def _read(self, rows: CausalRows, pending: Sequence[list[int]]) -> tuple[CausalRows, torch.Tensor, list[int]]:
        """Read the pending pieces of each row, in groups of similar length. Returns the reordered rows, the scores
        after each ``(B, V)``, and the order."""
        groups = length_groups(list(map(len, pending)), rows.enough_pieces)
        if len(groups) == 1:
            return rows, rows.read(pending, [1] * len(pending)), list(range(len(pending)))
        parts = [rows.chosen(group) for group in groups]
        scores = [
            part.read([pending[row] for row in group], [1] * len(group))
            for part, group in zip(parts, groups, strict=True)
        ]
        return joined(parts), torch.cat(scores), [row for group in groups for row in group]

    def _choose(self, candidates: list[Candidate], slot: SlotContext, scores: np.ndarray) -> tuple[Candidate, bool]:
        """The candidate that the method chooses, and whether it is a fallback."""
        candidates = self._weighed([candidate for candidate in candidates if fits(candidate.word, slot.want)])
        if not candidates and self._known is not None:
            candidates = self._weighed(self._words_of_one_piece(slot, scores))
        if candidates:
            return self._by_method(candidates, slot)
        return (self._last_resort(slot, scores), True) if self._beyond is None else (self._by_frequency(slot), False)

    def _weighed(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates with the factors of their words, scaled by the temperature, added to their scores."""
        if self._factors is None:
            return candidates
        temperature, factors = self._settings.drawn_at or 1.0, self._factors
        return [
            replace(each, score=each.score + temperature * factors.get(fold(each.word), self._least))
            for each in candidates
        ]

    def _by_method(self, candidates: list[Candidate], slot: SlotContext) -> tuple[Candidate, bool]:
        off_list = self._allowed_words.off_list([candidate.word for candidate in candidates], slot.language)
        scores = np.array([candidate.score for candidate in candidates], dtype=np.float32)
        chosen, fallback = self._settings.choose(scores, off_list, self._randomness.at(slot.place))
        return candidates[chosen], fallback

    def _by_frequency(self, slot: SlotContext) -> Candidate:
        """A word of the language by frequency, not on the list, if the model found none."""
        assert self._beyond is not None, "languages have it"
        self._drawn_beyond += 1
        word = self._beyond.draw(slot.place, slot.want, slot.language).word
        (pieces,) = self._language_model.encode([" " * slot.spaced + word])
        return Candidate(word, tuple(pieces), 0.0)

    def _last_resort(self, slot: SlotContext, scores: np.ndarray) -> Candidate:
        """The likeliest word of one piece if no candidate was found, preferably not on the list."""
        candidates = self._words_of_one_piece(slot, scores)
        return next((each for each in candidates if not self._allowed_words.holds(each.word)), candidates[0])

    def _words_of_one_piece(self, slot: SlotContext, scores: np.ndarray) -> list[Candidate]:
        """All words of one piece, the likeliest first by the ``(V,)`` scores of their pieces."""
        whole = self._words[slot.kind].whole[slot.spaced]
        if slot.language is None and not (whole >= 0).any():
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

    def _make_room(self, rows: CausalRows, states: Sequence[_Progress]) -> None:
        """Restart rows at the end of the model's positions with the text nearest to their slots."""
        forgotten = []
        for row, state in enumerate(states):
            need = len(state.pending) + LONGEST_WORD + len(state.slot.following)
            if rows.lengths[row] + need <= self._language_model.positions:
                forgotten.append(0)
                continue
            state.pending, state.windowed = self._window(state), True
            forgotten.append(rows.lengths[row])
        rows.take_back(forgotten)

    def _window(self, state: _Progress) -> list[int]:
        """The pieces of as many words around the next slot as fit."""
        sentence, index = state.encoded.sentence, len(state.fills)
        given: list[str] = []  # in the prompt's input
        written: list[str] = []  # in the output
        for number in range(index + 1):
            words = _WORDS.findall(sentence.texts[number])
            given += words
            written += words
            if number < index:
                given.append(MARKER)
                written.append(state.fills[number].word)
        after: list[str] = []
        for number in range(index + 1, len(sentence.texts)):
            after += _WORDS.findall(sentence.texts[number])
            if number < len(sentence.slots):
                after.append(MARKER)
        room = self._language_model.positions - LONGEST_WORD - len(state.slot.following)
        # A word has at least one piece, so more words than ``room`` never fit.
        reach = 1 << min(max(len(written), len(after)), room).bit_length()
        while True:
            text = "".join(written[len(written) - reach :] if reach < len(written) else written).lstrip()
            text = text[:-1] if state.encoded.spaced[index] and text.endswith(" ") else text
            near = "".join(given[len(given) - reach :] if reach < len(given) else given).lstrip()
            inputs = self._prompt.inputs([[near, "".join(after[:reach])]])[0]
            pieces = [*self._prompt.head, *inputs, *self._language_model.encode([text])[0]]
            if len(pieces) <= room:
                return pieces
            if reach == 0:
                raise ModelError(
                    f"filler {self._language_model.name!r} has {self._language_model.positions} positions, too few for "
                    "its prompt and one marker"
                )
            reach //= 2


def constrained_filler(prepared: PreparedFill, method: CandidateMethod) -> tuple[ConstrainedFiller, Casing]:
    """The filler for a fill by a causal language model with forced known words, and its casing."""
    words, languages = prepared.words, prepared.learned.languages
    counts, spoken, beyond = words.counts, None, None
    if counts and languages:
        shares = languages.shares(counts.words).items()
        spoken = {language: counts.shared(share).folded() for language, share in shares}
        beyond = UnigramFiller(words.off_list(counts, languages), prepared.randomness)
    known = None
    if counts and prepared.method.matches_classes and isinstance(prepared.method, ClassAware):
        known = (counts, words.opened.class_words(prepared.method.class_check, counts))
    filler = ConstrainedFiller(
        words.opened.causal,
        method,
        words.allowed_words,
        prepared.randomness,
        counts.folded() if counts else None,
        spoken=spoken,
        beyond=beyond,
        learned=prepared.learned,
        known=known,
    )
    return filler, words.casing(is_cased=filler.is_cased)
