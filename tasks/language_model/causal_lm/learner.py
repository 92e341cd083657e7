"""A causal language model of Hugging Face's as it is trained further step by step."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import ModelError
from tasks.language_model.causal_lm.folder import CausalRecord
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.language_models import LanguageModel, encode_sentences
from tasks.language_model.learners import Learner, MarkedText, words_of
from tasks.language_model.transformer.batching import Batch

if TYPE_CHECKING:
    from tasks.causal_model import Network
    from tasks.language_model.causal_lm.joined import JoinedModels


class PieceLearner(Learner):
    """A causal language model of Hugging Face's."""

    def __init__(self, causal: CausalModel, record: CausalRecord) -> None:
        self.causal, self.record = causal, record
        self.network = causal.model.eval().requires_grad_(True)
        self.longest, self.vocabulary_hash = causal.maximum_pieces, causal.pieces.hash

    def encode(self, lines: Iterable[str], spans: Iterable[Sequence[MaskedSpan]] | None = None) -> MarkedText:
        """As the class says."""
        from tasks.language_model.causal_lm.model import OpenVocabulary

        sentences, is_private = words_of(lines, spans)
        vocabulary = OpenVocabulary()
        pieces = self.causal.pieces.of_text(encode_sentences(sentences, vocabulary), vocabulary)
        return MarkedText(pieces.text, is_private[pieces.word], pieces.is_target, pieces.is_first & pieces.is_target)

    def copy(self) -> "PieceLearner":
        """As the class says."""
        return self._with(copy.deepcopy(self.network))

    def _with(self, network: "Network | JoinedModels") -> "PieceLearner":
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
        """As the class says; all weights are written, since no update of low rank says what training did."""
        from tasks.language_model.causal_lm.folder import save_adapted, save_joined
        from tasks.language_model.causal_lm.joined import JoinedModels

        if isinstance(self.network, JoinedModels):
            save_joined(folder, self.causal, self.record)
        else:
            save_adapted(folder, self.causal, self.record, full=True)

    @contextmanager
    def learning(self) -> Iterator[None]:
        """As the class says."""
        from tasks.causal_model import plain_attention

        with plain_attention(self.network):
            yield
