"""What a language model has to forget, and by what it is kept from forgetting the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places

if TYPE_CHECKING:
    from tasks.unlearning.learners import Learner


@dataclass(frozen=True)
class MarkedText:
    """Sentences as ids of words or pieces, of which some are private; ``Learner.encode`` makes it."""

    text: EncodedText
    is_private: np.ndarray
    """Of each id of the text (T,), bool."""
    is_target: np.ndarray
    """Whether each id is to be predicted (T,), bool."""
    is_word: np.ndarray
    """Whether it is to be predicted and begins a word, or a sentence's end (T,), bool."""

    @property
    def sentences(self) -> int:
        """Lines that have a word."""
        return self.text.sentences

    def words(self) -> np.ndarray:
        """Words and end of each sentence (S,)."""
        return np.add.reduceat(self.is_word.astype(np.float64), self.text.offsets[:-1])


@dataclass(frozen=True)
class Request:
    """A model, what it has to forget, and what not."""

    start: "Learner"
    """The model that was trained on both; it stays as it is."""
    base: "Learner"
    """The model that it was adapted from, which has seen neither."""
    forget: MarkedText
    retain: MarkedText
    """Text that it was trained on too, and may know."""
    refilled: MarkedText | None
    """What is to be forgotten, with other words in the places of the private ones, in one copy or several."""
    seed: int


@dataclass(frozen=True)
class PlacedBatch:
    """Windows side by side, and where their targets stand in the text."""

    batch: Batch
    places: np.ndarray
    """Index of each target (N,) into the text's ids."""


def batches(marked: MarkedText, maximum_tokens: int, batch_tokens: int, seed: int) -> Iterator[PlacedBatch]:
    """Batches of about so many targets without end, each epoch in an order of its own."""
    text = marked.text
    windows, epoch = divide(text, maximum_tokens), 0
    while True:
        for chosen in shuffled_batches(windows, batch_tokens, seed, epoch):
            batch = make_batch(text, marked.is_target, windows, chosen)
            yield PlacedBatch(batch, target_places(batch, windows.first[chosen]))
        epoch += 1
