"""Language models that are trained further step by step, held against others, or steered: whatever their kind.

``open_learner`` gives that of a model folder. Ways to forget, and text drawn by contrast, ask no kind of model anything
of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from torch import Tensor, nn

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import ModelError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.evaluation.reference_text import is_touched, placed_words
from tasks.language_model.language_models import LanguageModel, Words
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places

if TYPE_CHECKING:
    pass


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

    def and_then(self, other: "MarkedText") -> "MarkedText":
        """Both, one behind the other."""
        one, two = self.text, other.text
        text = EncodedText(
            tokens=np.concatenate([one.tokens, two.tokens]),
            offsets=np.concatenate([one.offsets, two.offsets[1:] + one.offsets[-1]]),
            lines=np.concatenate([one.lines, two.lines + len(one.lines)]),
            empty_lines=one.empty_lines + two.empty_lines,
            marker_like=one.marker_like + two.marker_like,
            markers_are_targets=one.markers_are_targets,
        )
        parts = ("is_private", "is_target", "is_word")
        return MarkedText(text, *(np.concatenate([getattr(self, part), getattr(other, part)]) for part in parts))

    def words(self) -> np.ndarray:
        """Words and end of each sentence (S,)."""
        return np.add.reduceat(self.is_word.astype(np.float64), self.text.offsets[:-1])


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


class Learner(ABC):
    """A language model that can be trained further. It computes without dropout."""

    network: Any
    """All that learns."""
    longest: int
    """Words or pieces that it reads at once."""
    vocabulary_hash: str

    @abstractmethod
    def encode(self, lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None = None) -> MarkedText:
        """Lines, and what is private in each; without ``spans`` nothing is. Lines without a word are left out."""

    @abstractmethod
    def copy(self) -> Self:
        """A model of its own with the same weights."""

    @property
    @abstractmethod
    def layers(self) -> Sequence[nn.Module]:
        """Its blocks, the first one first."""

    @abstractmethod
    def states(self, batch: Batch, layer: int | None = None) -> Tensor:
        """Hidden states (N, D) at a batch's positions: behind so many layers, or those that tell the next word."""

    @abstractmethod
    def scores_of(self, states: Tensor) -> Tensor:
        """Scores (N, V) float32 of every next word or piece by its last hidden states (N, D)."""

    def scores(self, batch: Batch) -> Tensor:
        """The same at the positions of a batch."""
        return self.scores_of(self.states(batch))

    @abstractmethod
    def log_probability(self, batch: Batch) -> Tensor:
        """Of the targets of a batch (N,), in nats, without a gradient."""

    @abstractmethod
    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """Sum over the targets of a batch of -w log p, in nats; ``weights`` (N,), 1 each by default."""

    @abstractmethod
    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """Of all ids of a text (T,), in nats; 0 where there is no target."""

    @abstractmethod
    def scorer(self) -> LanguageModel:
        """The model as evaluation and attacks ask it; what it says is of the weights as they are now."""

    @abstractmethod
    def steered(self, down: Tensor, up: Tensor) -> Self:
        """A copy whose last hidden states h are h + h down up; ``down`` (D, R), ``up`` (R, D)."""

    @abstractmethod
    def joined(self, others: Sequence[tuple[Self, float]], weight: float) -> Self:
        """One model that says softmax(weight log p + sum of the others' weights times their log p)."""

    @abstractmethod
    def save(self, folder: str) -> None:
        """Write a model folder."""

    @contextmanager
    def learning(self) -> Iterator[None]:
        """What training needs around its steps."""
        yield


def open_learner(folder: str, option: str = "--model") -> Learner:
    """The model of a folder, of a package or of the hub.

    Raises ``ModelError`` where it is of a kind that cannot be trained on, or goes by more than its own sentence.
    """
    kind = kind_of_model(folder)
    if kind == "causal_lm":
        from tasks.language_model.causal_lm.folder import load
        from tasks.language_model.causal_lm.learner import PieceLearner

        return PieceLearner(*load(folder))
    if kind != "transformer":
        raise ModelError(f"{option} {folder!r} is of kind {kind!r}, which has no weights to train; adapt another kind")
    from tasks.language_model.transformer.learner import WordLearner
    from tasks.language_model.transformer.model import load_model

    model, vocabulary = load_model(folder)
    if model.languages is not None:
        raise ModelError(
            f"{option} {folder!r} has counted the languages of its text (transformer.languages), which no way to "
            "forget changes; adapt without"
        )
    return WordLearner(model, vocabulary)


def words_of(lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None) -> tuple[list[Words], np.ndarray]:
    """The words of each line that has one, and whether each is private; a sentence's beginning and end are not."""
    sentences: list[Words] = []
    private: list[bool] = []
    for line, found in zip(lines, spans, strict=True) if spans is not None else ((line, ()) for line in lines):
        words = placed_words(line)
        if words:
            sentences.append(tuple(word.word for word in words))
            private += [False, *(is_touched(word.start, word.end, found) for word in words), False]
    return sentences, np.array(private, dtype=bool)
