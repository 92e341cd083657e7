"""Language models that can be trained further, contrasted or steered, independent of their kind.

``tasks.language_model.opening`` opens the learner of a model folder. Unlearning and contrastive decoding use this
interface alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from torch import Tensor

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.language_models import LanguageModel, encode_sentences
from tasks.language_model.normalisation import normalise
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places


@dataclass(frozen=True)
class MarkedText:
    """Sentences as ids of words or subword tokens, made by ``Learner.encode``."""

    text: EncodedText
    is_target: np.ndarray
    """Whether the model predicts each id (T,), bool."""
    is_first: np.ndarray
    """Whether each id is a word, or the first subword token of one (T,), bool."""

    @property
    def sentences(self) -> int:
        """Number of lines that have a word."""
        return self.text.sentences

    @property
    def is_word(self) -> np.ndarray:
        """Whether each id is predicted and begins a word or is a sentence end (T,), bool."""
        return self.is_first & self.is_target

    def words(self) -> np.ndarray:
        """Number of words of each sentence, its end included (S,)."""
        return np.add.reduceat(self.is_word.astype(np.float64), self.text.offsets[:-1])


PlacedBatch = tuple[Batch, np.ndarray]
"""Windows of one batch, and the index of each target (N,) into the text's ids."""


def batches(marked: MarkedText, maximum_tokens: int, batch_tokens: int, seed: int) -> Iterator[PlacedBatch]:
    """Batches of about ``batch_tokens`` targets, without end; each epoch has its own order."""
    text = marked.text
    windows, epoch = divide(text, maximum_tokens), 0
    while True:
        for chosen in shuffled_batches(windows, batch_tokens, seed, epoch):
            batch = make_batch(text, marked.is_target, windows, chosen)
            yield batch, target_places(batch, windows.first[chosen])
        epoch += 1


class Learner(LanguageModel):
    """A language model that can be trained further, without dropout."""

    network: Any
    """The module with all trainable weights."""
    longest: int

    def encode(self, lines: Iterable[str]) -> MarkedText:
        """The ids of lines; those without a word are left out."""
        return self.marked(
            encode_sentences([words for line in lines if (words := tuple(normalise(line)))], self.vocabulary)
        )

    def marked(self, text: EncodedText) -> MarkedText:
        """The ids of a text over the model's vocabulary, as the network reads them."""
        return MarkedText(text, text.is_target(), np.ones(len(text.tokens), dtype=bool))

    def copy(self) -> Self:
        """An independent copy with the same weights."""
        raise NotImplementedError

    def states(self, batch: Batch) -> Tensor:
        """The last hidden states (N, D) at a batch's positions."""
        raise NotImplementedError

    def scores_of(self, states: Tensor) -> Tensor:
        """The scores (N, V) float32 of every next word or subword token, from the last hidden states (N, D)."""
        raise NotImplementedError

    def scores(self, batch: Batch) -> Tensor:
        """The scores (N, V) float32 at the positions of a batch."""
        return self.scores_of(self.states(batch))

    def log_probability(self, batch: Batch) -> Tensor:
        """The log-probabilities of a batch's targets (N,), in nats, without a gradient."""
        raise NotImplementedError

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """The sum of -w log p over a batch's targets, in nats; ``weights`` (N,), 1 each by default."""
        raise NotImplementedError

    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """The log-probabilities of all ids of a text (T,), in nats; 0 where there is no target."""
        return self.scores_of_ids(marked.text)[0]

    def mean_loss(self, marked: MarkedText) -> float:
        """Mean loss of a text in nats a target: a word or a sentence end."""
        return -float(self.log_probabilities(marked).sum() / marked.is_word.sum())

    def scorer(self) -> LanguageModel:
        """The model as evaluation and attacks use it, with the current weights."""
        return self

    def steered(self, down: Tensor, up: Tensor) -> Self:
        """A copy with last hidden states h + h down up; ``down`` (D, R), ``up`` (R, D)."""
        raise NotImplementedError

    def joined(self, others: Sequence[tuple[Self, float]], weight: float) -> Self:
        """One model with p = softmax(weight log p + sum of the others' weights times their log p)."""
        raise NotImplementedError

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Context in which training steps run."""
        yield
