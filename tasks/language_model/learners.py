"""Language models that are trained further step by step, held against others, or steered: whatever their kind.

``open_learner`` gives that of a model folder. Ways to forget, and text drawn by contrast, ask no kind of model anything
of its own.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import ModelError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.evaluation.reference_text import is_touched, placed_words
from tasks.language_model.language_models import LanguageModel, Words, encode_sentences
from tasks.language_model.model_folder import kind_of_model
from tasks.language_model.transformer.batching import Batch, divide, make_batch, shuffled_batches, target_places
from tasks.torch_setup import has_bfloat16

if TYPE_CHECKING:
    from tasks.language_model.causal_lm.folder import CausalRecord
    from tasks.language_model.causal_lm.model import CausalModel
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary


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


class WordLearner(Learner):
    """The Transformer of words."""

    def __init__(self, model: "TransformerLanguageModel", vocabulary: "Vocabulary") -> None:
        self.network, self.vocabulary = model.eval(), vocabulary
        self.longest, self.vocabulary_hash = model.architecture.maximum_tokens, vocabulary.hash

    def encode(self, lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None = None) -> MarkedText:
        """As the class says."""
        sentences, is_private = _words_of(lines, spans)
        text = encode_sentences(sentences, self.vocabulary)
        return MarkedText(text, is_private, text.is_target(), text.is_target())

    def copy(self) -> "WordLearner":
        """As the class says."""
        return WordLearner(copy.deepcopy(self.network), self.vocabulary)

    @property
    def layers(self) -> Sequence[nn.Module]:
        """As the class says."""
        return list(self.network.blocks)

    def states(self, batch: Batch, layer: int | None = None) -> Tensor:
        """As the class says."""
        hidden: Tensor = self.network(batch.tokens, layers=layer)
        return hidden.flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """As the class says."""
        return functional.linear(states, self.network.embedding.weight)

    def log_probability(self, batch: Batch) -> Tensor:
        """As the class says."""
        from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities

        with torch.no_grad():
            states = self.states(batch)
        return chunked_log_probabilities(states, self.network.embedding.weight, batch.targets, _arithmetic())

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """As the class says."""
        from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy

        projection = self.network.embedding.weight
        return chunked_cross_entropy(self.states(batch), projection, batch.targets, weights, _arithmetic())

    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """As the class says."""
        from tasks.language_model.transformer.scoring import score_targets

        found = np.zeros(len(marked.text.tokens))
        found[marked.is_target] = score_targets(self.network, marked.text).log_probability
        return found

    def scorer(self) -> LanguageModel:
        """As the class says."""
        from tasks.language_model.transformer.scoring import TransformerScorer

        return TransformerScorer(self.network, self.vocabulary)

    def steered(self, down: Tensor, up: Tensor) -> "WordLearner":
        """As the class says."""
        from tasks.language_model.transformer.joined import steered

        return WordLearner(steered(self.network, down, up), self.vocabulary)

    def joined(self, others: Sequence[tuple["WordLearner", float]], weight: float) -> "WordLearner":
        """As the class says: a Transformer as wide as all together."""
        from tasks.language_model.transformer.joined import joined

        parts = [(self.network, weight), *((other.network, share) for other, share in others)]
        return WordLearner(joined(parts), self.vocabulary)

    def save(self, folder: str) -> None:
        """As the class says."""
        from tasks.language_model.transformer.model import save_model

        save_model(folder, self.network, self.vocabulary)


class PieceLearner(Learner):
    """A causal language model of Hugging Face's."""

    def __init__(self, causal: "CausalModel", record: "CausalRecord") -> None:
        self.causal, self.record = causal, record
        self.network = causal.model.eval().requires_grad_(True)
        self.longest, self.vocabulary_hash = causal.maximum_pieces, causal.pieces.hash

    def encode(self, lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None = None) -> MarkedText:
        """As the class says."""
        from tasks.language_model.causal_lm.model import OpenVocabulary

        sentences, is_private = _words_of(lines, spans)
        vocabulary = OpenVocabulary()
        pieces = self.causal.pieces.of_text(encode_sentences(sentences, vocabulary), vocabulary)
        return MarkedText(pieces.text, is_private[pieces.word], pieces.is_target, pieces.is_first & pieces.is_target)

    def copy(self) -> "PieceLearner":
        """As the class says."""
        return self._with(copy.deepcopy(self.network))

    def _with(self, network: Any) -> "PieceLearner":
        from tasks.language_model.causal_lm.model import CausalModel

        return PieceLearner(CausalModel(network, self.causal.pieces, self.causal.name), self.record)

    @property
    def layers(self) -> Sequence[nn.Module]:
        """As the class says."""
        count = self.network.config.num_hidden_layers
        found = [part for part in self.network.modules() if isinstance(part, nn.ModuleList) and len(part) == count]
        if not found:
            raise ModelError(
                f"model {self.causal.name!r} has no list of {count} layers, which this way to forget needs"
            )
        return list(found[0])

    def states(self, batch: Batch, layer: int | None = None) -> Tensor:
        """As the class says."""
        hidden = self.network(input_ids=batch.tokens, use_cache=False, output_hidden_states=True).hidden_states
        return hidden[-1 if layer is None else layer].flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """As the class says."""
        found: Tensor = self.network.get_output_embeddings()(states)
        return found.float()

    def scores(self, batch: Batch) -> Tensor:
        """As the class says; the model's own, in which it may scale or bound what ``scores_of`` gives."""
        batch = batch.to(self.network.device)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._is_lower):
            return self.causal.scores(batch)

    @property
    def _is_lower(self) -> bool:
        from tasks.causal_model import lower_on_processor

        return torch.is_grad_enabled() and lower_on_processor(self.network)

    def log_probability(self, batch: Batch) -> Tensor:
        """As the class says."""
        with torch.no_grad():
            return -self._losses(batch)

    def _losses(self, batch: Batch) -> Tensor:
        return functional.cross_entropy(self.scores(batch), batch.targets.to(self.network.device), reduction="none")

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """As the class says."""
        losses = self._losses(batch)  # (N,)
        return losses.sum() if weights is None else (weights.to(losses) * losses).sum()

    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """As the class says."""
        from tasks.language_model.causal_lm.model import PieceText

        word = np.cumsum(marked.is_word) - 1
        return self.causal.log_probabilities(PieceText(marked.text, marked.is_target, word, marked.is_word))

    def scorer(self) -> LanguageModel:
        """As the class says; of a copy, since scoring lays weights out in its own way."""
        from tasks.language_model.causal_lm.scoring import CausalScorer

        return CausalScorer(self.copy().causal)

    def steered(self, down: Tensor, up: Tensor) -> "PieceLearner":
        """As the class says: (h + h down up) W is h (W + up' down' W), another matrix of outputs."""
        found = self.copy()
        old = found.network.get_output_embeddings()
        own = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None, dtype=old.weight.dtype)
        with torch.no_grad():
            own.weight.copy_(old.weight + (old.weight @ up.t().to(old.weight)) @ down.t().to(old.weight))
            if old.bias is not None:
                own.bias.copy_(old.bias)
        found.network.set_output_embeddings(own.to(old.weight.device))
        found.network.config.tie_word_embeddings = False
        return found

    def joined(self, others: Sequence[tuple["PieceLearner", float]], weight: float) -> "PieceLearner":
        """As the class says."""
        from tasks.language_model.causal_lm.joined import JoinedModels

        parts = [(self.network, weight, 0.0), *((other.network, share, 0.0) for other, share in others)]
        return self._with(JoinedModels(parts))

    def save(self, folder: str) -> None:
        """As the class says; all weights are written, since no update of low rank says what training did.

        Raises ``ModelError`` for several models in one.
        """
        from tasks.language_model.causal_lm.folder import save_adapted
        from tasks.language_model.causal_lm.joined import JoinedModels

        if isinstance(self.network, JoinedModels):
            raise ModelError(
                "a contrast of causal models has no folder of its own; take another method, or a Transformer of ours"
            )
        save_adapted(folder, self.causal, self.record, full=True)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """As the class says."""
        from tasks.causal_model import plain_attention

        with plain_attention(self.network):
            yield


def open_learner(folder: str, option: str = "--model") -> Learner:
    """The model of a folder, of a package or of the hub.

    Raises ``ModelError`` where it is of a kind that cannot be trained on, or goes by more than its own sentence.
    """
    kind = kind_of_model(folder)
    if kind == "causal_lm":
        from tasks.language_model.causal_lm.folder import load

        return PieceLearner(*load(folder))
    if kind != "transformer":
        raise ModelError(f"{option} {folder!r} is of kind {kind!r}, which has no weights to train; adapt another kind")
    from tasks.language_model.transformer.model import load_model

    model, vocabulary = load_model(folder)
    if model.architecture.context == "stream":
        raise ModelError(f"{option} {folder!r} reads across sentences; ways to forget are for one that does not")
    if model.languages is not None:
        raise ModelError(
            f"{option} {folder!r} has counted the languages of its text (transformer.languages), which no way to "
            "forget changes; adapt without"
        )
    return WordLearner(model, vocabulary)


def _words_of(lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None) -> tuple[list[Words], np.ndarray]:
    """The words of each line that has one, and whether each is private; a sentence's beginning and end are not."""
    sentences: list[Words] = []
    private: list[bool] = []
    for line, found in zip(lines, spans, strict=True) if spans is not None else ((line, ()) for line in lines):
        words = placed_words(line)
        if words:
            sentences.append(tuple(word.word for word in words))
            private += [False, *(is_touched(word.start, word.end, found) for word in words), False]
    return sentences, np.array(private, dtype=bool)


def _arithmetic() -> torch.dtype:
    """Of the products with the vocabulary, as in other training."""
    return torch.bfloat16 if has_bfloat16() else torch.float32
