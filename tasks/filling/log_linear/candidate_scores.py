"""What a masked language model says of the candidate words at given places, as a table."""

from collections.abc import Iterable, Sequence

import numpy as np

from tasks.errors import ModelError
from tasks.filling.log_linear.tuning_places import OpenPlace
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.windows import Window, padded_pieces, window_batches
from tasks.filling.masked_sentence import read_masked_line

_WINDOWS = 64
"""Per forward pass; not a setting, so that what is learned does not depend on one."""


def candidate_log_probabilities(
    model: MaskedLanguageModel, candidates: CandidateWords, allowed: np.ndarray, places: Sequence[OpenPlace]
) -> np.ndarray:
    """``(N, A)`` float32 log-probabilities in nats of the ``A`` allowed candidates (``(W,)`` booleans), which share
    all probability among themselves, at ``N`` places.

    Raises ``ModelError`` where the model's scores are not numbers. Where a GPU runs out of memory the places go in
    smaller batches; ``ResourceError`` where one alone does not fit.
    """
    import torch

    entries = [torch.from_numpy(of[allowed]).to(model.model.device) for of in (candidates.glued, candidates.spaced)]
    table = np.empty((len(places), int(np.count_nonzero(allowed))), dtype=np.float32)
    items = []
    for index, (pieces, place) in enumerate(zip(model.encode([p.texts for p in places]), places, strict=True)):
        positions = [position for position, piece in enumerate(pieces) if piece == model.mask_entry]
        (window,) = model.frame.windows(pieces, [positions[place.slot]])
        items.append((index, window))

    def enter(batch: Sequence[tuple[int, Window]]) -> None:
        """Enter the places of a batch, or of a part of one: nothing of it stays on a GPU."""
        logits = model.logits([window for _, window in batch])  # (B, V)
        if not bool(torch.isfinite(logits.sum())):
            raise ModelError(
                f"filler {model.name!r} gives scores that are not numbers (NaN or infinity); its weights are damaged: "
                "fetch the model again, or train it with a lower learning rate"
            )
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
    for batch in window_batches(
        items,
        most_windows=_WINDOWS,
        vocabulary_size=model.vocabulary_size,
        on_gpu=on_gpu,
        equal_lengths=model.equal_lengths,
    ):
        model.halving.run(batch, enter, padded_pieces)
    return table


def places_of_corpus(lines: Iterable[str], number: int, most: int, *, merge_markers: bool) -> list[OpenPlace]:
    """At most so many of the ``number`` slots of a masked corpus, evenly spread; each sees masks at all others."""
    every = max(1, -(-number // most)) if most else 1
    places: list[OpenPlace] = []
    counted = 0
    for line in lines:
        sentence = read_masked_line(line, 1, merge_markers=merge_markers)
        for slot in range(len(sentence.slots)):
            if counted % every == 0:
                places.append(OpenPlace(sentence.texts, slot))
            counted += 1
    return places


def count_slots(lines: Iterable[str], *, merge_markers: bool) -> int:
    """How many slots a masked corpus has."""
    return sum(len(read_masked_line(line, 1, merge_markers=merge_markers).slots) for line in lines)
