"""Masked places of generic text, and a table of a masked LM's candidate probabilities at places.

Generic text is public. It is masked like the corpus. All words that are not on the technique's list of
never-masked words are masked, or a random share of the words for a technique without a list. Only places of one word
are guessed. A place has the same context as in filling: words at the places before it, here the true ones, and mask
tokens at the open places.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from tasks.causal_model import NO_NUMBERS
from tasks.corpora.words import fold, word_spans
from tasks.errors import ModelError
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import MaskedSentence, read_masked_line


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """One open slot of a sentence."""

    texts: tuple[str, ...]
    """The ``n + 1`` texts around the ``n`` open slots."""
    slot: int
    """Index of the slot, from 0."""


@dataclass(frozen=True)
class TuningText:
    """Masked places of generic text."""

    places: list[OpenPlace]
    masked_words: int
    """Number of masked words of the lines used."""
    without_candidate: int
    """Number of places whose word is no candidate: the filler cannot write it, or the word counts lack it."""


def tuning_text(
    lines: Sequence[str],
    allowed_words: AllowedWords,
    candidates: Collection[str],
    *,
    cased: bool,
    most: int,
    share: float,
    seed: int,
) -> TuningText:
    """At most ``most`` places, from lines in random order.

    ``candidates``: words, folded unless ``cased``. ``share``: share of the words to mask if there is no
    list. A place sees the words of the places before it.
    """
    randomness = MarkerRandomness(seed)
    places: list[OpenPlace] = []
    masked = missed = 0
    for line in randomness.at(Place(0, 0)).permutation(len(lines)).tolist():
        if len(places) >= most:
            break
        text = lines[line]
        spans = _masked_spans(text, allowed_words, share, randomness.at(Place(line + 1, 0)))
        masked += len(spans)
        slots = _slots(text, spans)
        for index, slot in enumerate(slots):
            if len(slot) > 1:
                continue
            start, end = slot[0]
            word = text[start:end]
            if (word if cased else fold(word)) not in candidates:
                missed += 1
                continue
            places.append(OpenPlace(_texts(text, slots[index:]), 0))
    return TuningText(places[:most], masked, missed)


def _masked_spans(
    text: str, allowed_words: AllowedWords, share: float, random: np.random.Generator
) -> list[tuple[int, int]]:
    spans = word_spans(text)
    if allowed_words:
        return [(start, end) for start, end in spans if not allowed_words.holds(text[start:end])]
    if not spans:
        return []
    number = max(1, round(share * len(spans)))
    return [spans[index] for index in sorted(random.permutation(len(spans))[:number].tolist())]


def _slots(text: str, spans: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The spans of each slot: runs with only white space between."""
    slots: list[list[tuple[int, int]]] = []
    for span in spans:
        if slots and not text[slots[-1][-1][1] : span[0]].strip():
            slots[-1].append(span)
        else:
            slots.append([span])
    return slots


def _texts(text: str, slots: Sequence[Sequence[tuple[int, int]]]) -> tuple[str, ...]:
    """The texts around the slots; the first one is the whole text before the first slot."""
    starts = [slot[0][0] for slot in slots] + [len(text)]
    ends = [0] + [slot[-1][1] for slot in slots]
    return tuple(text[end:start] for end, start in zip(ends, starts, strict=True))


_WINDOWS = 64
"""Windows per forward pass; not a setting, so that averages do not depend on it."""


def candidate_log_probabilities(
    model: MaskedLanguageModel, candidates: CandidateWords, allowed: np.ndarray, places: Sequence[OpenPlace]
) -> np.ndarray:
    """``(N, A)`` float32 log-probabilities in nats of the ``A`` allowed candidates (``(W,)`` booleans) at ``N`` places,
    normalised over these candidates.

    Raises ``ModelError`` if the model's scores are not finite. If a GPU runs out of memory, batches become smaller.
    Raises ``ResourceError`` if one place alone does not fit.
    """
    entries = [torch.from_numpy(of[allowed]).to(model.model.device) for of in (candidates.glued, candidates.spaced)]
    table = np.empty((len(places), int(np.count_nonzero(allowed))), dtype=np.float32)
    items = []
    for index, (pieces, place) in enumerate(zip(model.encode([p.texts for p in places]), places, strict=True)):
        positions = [position for position, piece in enumerate(pieces) if piece == model.mask_entry]
        (window,) = model.frame.windows(pieces, [positions[place.slot]])
        items.append((index, window))

    def enter(batch: Sequence[tuple[int, Window]]) -> None:
        """Enter the places of a batch, or of a part of one; frees its GPU memory."""
        logits = model.logits([window for _, window in batch])  # (B, V)
        if not bool(torch.isfinite(logits.sum())):
            raise ModelError(f"filler {model.name!r} {NO_NUMBERS}")
        rows = [index for index, _ in batch]
        spaced = [
            candidates.follows_space(places[row].texts[places[row].slot], line_start=places[row].slot == 0)
            for row in rows
        ]
        for kind in (False, True):
            chosen = [number for number, is_spaced in enumerate(spaced) if is_spaced is kind]
            if chosen:
                scores = logits[chosen].index_select(1, entries[kind])  # (n, A)
                table[[rows[number] for number in chosen]] = scores.log_softmax(dim=1).cpu().numpy()

    on_gpu = model.model.device.type == "cuda"
    for batch in window_batches(items, most_windows=_WINDOWS, vocabulary_size=model.vocabulary_size, on_gpu=on_gpu):
        model.halving.run(batch, enter, padded_pieces)
    return table


def places_of_corpus(lines: Sequence[str], most: int) -> list[OpenPlace]:
    """At most ``most`` slots of a masked corpus, evenly spaced; each sees mask tokens at all other slots."""

    def sentences() -> Iterator[MaskedSentence]:
        return (read_masked_line(line, 1, merge_markers=True) for line in lines)

    every = max(1, -(-sum(len(sentence.slots) for sentence in sentences()) // most))
    places = (OpenPlace(sentence.texts, slot) for sentence in sentences() for slot in range(len(sentence.slots)))
    return list(islice(places, 0, None, every))
