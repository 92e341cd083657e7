"""``PieceLearner``: a causal language model of Hugging Face that can be trained further."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.language_model.causal_lm.folder import CausalRecord
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.language_models import LanguageModel, encode_sentences
from tasks.language_model.learners import Learner, MarkedText, sentences_of
from tasks.language_model.transformer.batching import Batch

if TYPE_CHECKING:
    from tasks.causal_model import Network
    from tasks.language_model.causal_lm.joined import JoinedModels


class PieceLearner(Learner):
    """See ``Learner``."""

    def __init__(self, causal: CausalModel, record: CausalRecord) -> None:
        self.causal, self.record = causal, record
        self.network = causal.model.eval().requires_grad_(True)
        self.longest, self.vocabulary_hash = causal.maximum_pieces, causal.pieces.hash

    def encode(self, lines: Iterable[str]) -> MarkedText:
        """See ``Learner``."""
        from tasks.language_model.causal_lm.model import OpenVocabulary

        vocabulary = OpenVocabulary()
        pieces = self.causal.pieces.of_text(encode_sentences(sentences_of(lines), vocabulary), vocabulary)
        return MarkedText(pieces.text, pieces.is_target, pieces.is_first & pieces.is_target)

    def copy(self) -> "PieceLearner":
        """See ``Learner``."""
        return self._with(copy.deepcopy(self.network))

    def _with(self, network: "Network | JoinedModels") -> "PieceLearner":
        return PieceLearner(CausalModel(network, self.causal.pieces, self.causal.name), self.record)

    def states(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        hidden = self.network(input_ids=batch.tokens, use_cache=False, output_hidden_states=True).hidden_states
        return hidden[-1].flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """See ``Learner``."""
        found: Tensor = self.network.get_output_embeddings()(states)
        return found.float()

    def scores(self, batch: Batch) -> Tensor:
        """See ``Learner``. The model's own logits may be scaled or bounded, unlike ``scores_of``."""
        batch = batch.to(self.network.device)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._is_lower):
            return self.causal.scores(batch)

    @property
    def _is_lower(self) -> bool:
        from tasks.causal_model import lower_on_processor

        return torch.is_grad_enabled() and lower_on_processor(self.network)

    def log_probability(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        with torch.no_grad():
            return -self._losses(batch)

    def _losses(self, batch: Batch) -> Tensor:
        return functional.cross_entropy(self.scores(batch), batch.targets.to(self.network.device), reduction="none")

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """See ``Learner``."""
        losses = self._losses(batch)  # (N,)
        return losses.sum() if weights is None else (weights.to(losses) * losses).sum()

    def log_probabilities(self, marked: MarkedText) -> np.ndarray:
        """See ``Learner``."""
        from tasks.language_model.causal_lm.model import PieceText

        word = np.cumsum(marked.is_word) - 1
        return self.causal.log_probabilities(PieceText(marked.text, marked.is_target, word, marked.is_word))

    def scorer(self) -> LanguageModel:
        """See ``Learner``. It scores with a copy, since scoring changes the layout of weights."""
        from tasks.language_model.causal_lm.scoring import CausalScorer

        return CausalScorer(self.copy().causal)

    def steered(self, down: Tensor, up: Tensor) -> "PieceLearner":
        """See ``Learner``. (h + h down up) W is h (W + up' down' W), so only the output matrix changes."""
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
        """See ``Learner``."""
        from tasks.language_model.causal_lm.joined import JoinedModels

        parts = [(self.network, weight, 0.0), *((other.network, share, 0.0) for other, share in others)]
        return self._with(JoinedModels(parts))

    def save(self, folder: str) -> None:
        """See ``Learner``. All weights are written, since a low-rank update does not cover this training."""
        from tasks.language_model.causal_lm.folder import save_adapted, save_joined
        from tasks.language_model.causal_lm.joined import JoinedModels

        if isinstance(self.network, JoinedModels):
            save_joined(folder, self.causal, self.record)
        else:
            save_adapted(folder, self.causal, self.record, full=True)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """See ``Learner``."""
        from tasks.causal_model import plain_attention

        with plain_attention(self.network):
            yield
