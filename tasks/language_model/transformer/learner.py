"""``WordLearner``: the word-level Transformer that can be trained further."""

import copy
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.language_model.language_models import LanguageModel, encode_sentences
from tasks.language_model.learners import Learner, MarkedText, sentences_of
from tasks.language_model.transformer.batching import Batch
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary
from tasks.torch_setup import has_bfloat16


class WordLearner(Learner):
    """See ``Learner``."""

    def __init__(self, model: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
        self.network, self.vocabulary = model.eval(), vocabulary
        self.longest, self.vocabulary_hash = model.architecture.maximum_tokens, vocabulary.hash

    def encode(self, lines: Iterable[str]) -> MarkedText:
        """See ``Learner``."""
        text = encode_sentences(sentences_of(lines), self.vocabulary)
        return MarkedText(text, text.is_target(), text.is_target())

    def copy(self) -> "WordLearner":
        """See ``Learner``."""
        return WordLearner(copy.deepcopy(self.network), self.vocabulary)

    def states(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        hidden: Tensor = self.network(batch.tokens)
        return hidden.flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """See ``Learner``."""
        return functional.linear(states, self.network.embedding.weight)

    def log_probability(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities

        with torch.no_grad():
            states = self.states(batch)
        return chunked_log_probabilities(states, self.network.embedding.weight, batch.targets, _arithmetic())

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """See ``Learner``."""
        from tasks.language_model.transformer.chunked_cross_entropy import chunked_cross_entropy

        projection = self.network.embedding.weight
        return chunked_cross_entropy(self.states(batch), projection, batch.targets, weights, _arithmetic())

    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """See ``Learner``."""
        from tasks.language_model.transformer.scoring import score_targets

        found = np.zeros(len(marked.text.tokens))
        found[marked.is_target] = score_targets(self.network, marked.text).log_probability
        return found

    def scorer(self) -> LanguageModel:
        """See ``Learner``."""
        from tasks.language_model.transformer.scoring import TransformerScorer

        return TransformerScorer(self.network, self.vocabulary)

    def steered(self, down: Tensor, up: Tensor) -> "WordLearner":
        """See ``Learner``."""
        from tasks.language_model.transformer.joined import steered

        return WordLearner(steered(self.network, down, up), self.vocabulary)

    def joined(self, others: Sequence[tuple["WordLearner", float]], weight: float) -> "WordLearner":
        """See ``Learner``. The result is a Transformer as wide as all together."""
        from tasks.language_model.transformer.joined import joined

        parts = [(self.network, weight), *((other.network, share) for other, share in others)]
        return WordLearner(joined(parts), self.vocabulary)

    def save(self, folder: str) -> None:
        """See ``Learner``."""
        from tasks.language_model.transformer.model import save_model

        save_model(folder, self.network, self.vocabulary)


def _arithmetic() -> torch.dtype:
    """Data type of the products with the vocabulary, as in other training."""
    return torch.bfloat16 if has_bfloat16() else torch.float32
