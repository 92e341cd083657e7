"""Language models that can be trained further, contrasted or steered, independent of their kind.

``tasks.language_model.opening`` opens the learner of a model folder. Unlearning and contrastive decoding use this
interface alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from torch import Tensor

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.normalisation import normalise
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places


@dataclass(frozen=True)
class MarkedText:
    """Sentences as ids of words or subword tokens, made by ``Learner.encode``."""

    text: EncodedText
    is_target: np.ndarray
    """Whether the model predicts each id (T,), bool."""
    is_word: np.ndarray
    """Whether each id is predicted and begins a word or is a sentence end (T,), bool."""

    @property
    def sentences(self) -> int:
        """Number of lines that have a word."""
        return self.text.sentences

    def words(self) -> np.ndarray:
        """Number of words of each sentence, its end included (S,)."""
        return np.add.reduceat(self.is_word.astype(np.float64), self.text.offsets[:-1])


@dataclass(frozen=True)
class PlacedBatch:
    """Windows of one batch and the places of their targets in the text."""

    batch: Batch
    places: np.ndarray
    """Index of each target (N,) into the text's ids."""


def batches(marked: MarkedText, maximum_tokens: int, batch_tokens: int, seed: int) -> Iterator[PlacedBatch]:
    """Batches of about ``batch_tokens`` targets, without end; each epoch has its own order."""
    text = marked.text
    windows, epoch = divide(text, maximum_tokens), 0
    while True:
        for chosen in shuffled_batches(windows, batch_tokens, seed, epoch):
            batch = make_batch(text, marked.is_target, windows, chosen)
            yield PlacedBatch(batch, target_places(batch, windows.first[chosen]))
        epoch += 1


class Learner(ABC):
    """A language model that can be trained further, without dropout."""

    network: Any
    """The module with all trainable weights."""
    longest: int
    """Size of its window, in words or subword tokens."""
    vocabulary_hash: str

    @abstractmethod
    def encode(self, lines: Iterable[str]) -> MarkedText:
        """The ids of lines; those without a word are left out."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent copy with the same weights."""

    @abstractmethod
    def states(self, batch: Batch) -> Tensor:
        """The last hidden states (N, D) at a batch's positions."""

    @abstractmethod
    def scores_of(self, states: Tensor) -> Tensor:
        """The scores (N, V) float32 of every next word or subword token, from the last hidden states (N, D)."""

    def scores(self, batch: Batch) -> Tensor:
        """The scores (N, V) float32 at the positions of a batch."""
        return self.scores_of(self.states(batch))

    @abstractmethod
    def log_probability(self, batch: Batch) -> Tensor:
        """The log-probabilities of a batch's targets (N,), in nats, without a gradient."""

    @abstractmethod
    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """The sum of -w log p over a batch's targets, in nats; ``weights`` (N,), 1 each by default."""

    @abstractmethod
    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """The log-probabilities of all ids of a text (T,), in nats; 0 where there is no target."""

    @abstractmethod
    def scorer(self) -> LanguageModel:
        """The model as evaluation and attacks use it; its scores follow the current weights."""

    @abstractmethod
    def steered(self, down: Tensor, up: Tensor) -> Self:
        """A copy with last hidden states h + h down up; ``down`` (D, R), ``up`` (R, D)."""

    @abstractmethod
    def joined(self, others: Sequence[tuple[Self, float]], weight: float) -> Self:
        """One model with p = softmax(weight log p + sum of the others' weights times their log p)."""

    @abstractmethod
    def save(self, folder: str) -> None:
        """Write a model folder."""

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Context in which training steps run."""
        yield


def sentences_of(lines: Iterable[str]) -> list[Words]:
    """The words of each line that has one."""
    return [words for line in lines if (words := tuple(normalise(line)))]
