"""Contrastive decoding of one language model against another (Lu et al. 2025, "UniDetox", equations 1 to 4).

The next-word distribution is softmax(q) with q = log p_base + strength (log p_base - log p_unwanted). For the plain
difference, as in the paper, q = log p_base - log p_unwanted. Words are masked unless the mask's owner finds them at
least alpha times as probable as its likeliest word. Each model has its own keys and values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.causal_lm.joined import JoinedModels
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.language_models import Drawing, Words
from tasks.language_model.learners import Learner
from tasks.language_model.sampling import sample_pieces, sample_words
from tasks.language_model.transformer.scoring import WordTransformer

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.language_models import NextWords


@dataclass(frozen=True)
class Weighted:
    """A model and the weight of its log-probabilities; ``alpha`` above 0 makes it the owner of the mask."""

    model: Learner
    weight: float
    alpha: float = 0.0


class ContrastedWords:
    """See ``NextWords``: weighted sums over several models, which number histories alike."""

    def __init__(self, weighted: Sequence[Weighted]) -> None:
        """``weighted``: word models with their weights."""
        self._models: list[tuple[NextWords, Weighted]] = []
        for each in weighted:
            assert isinstance(each.model, WordTransformer), "models of one contrast are of one kind"
            self._models.append((each.model.copy().next_words(), each))
        self.vocabulary = self._models[0][0].vocabulary

    def start(self, columns: np.ndarray) -> None:
        """Forget all histories."""
        for model, _ in self._models:
            model.start(columns)

    def extend(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The histories with one more word (N,)."""
        found = [model.extend(histories, words) for model, _ in self._models]
        return found[0]

    def read(self, histories: np.ndarray) -> None:
        """Compute in one batch all that ``scores`` needs of these histories (N,)."""
        for model, _ in self._models:
            model.read(histories)

    def scores(self, histories: np.ndarray) -> "Tensor":
        """The scores of every token as the next one (N, C), -inf where masked."""
        import torch

        total: Tensor | None = None
        hidden: Tensor | None = None
        for model, each in self._models:
            own = torch.log_softmax(model.scores(histories), dim=1)
            if each.alpha:
                below = own < own.amax(1, keepdim=True) + math.log(each.alpha)
                hidden = below if hidden is None else hidden | below
            total = each.weight * own if total is None else total + each.weight * own
        assert total is not None, "there is a model at least"
        return total if hidden is None else total.masked_fill_(hidden, -math.inf)


def contrast(
    model: Learner, unwanted: Learner | None, strength: float | None, owner: Learner, alpha: float
) -> list[Weighted]:
    """The models of a contrast, each once, with its weight.

    ``strength``: weight of the difference to ``unwanted``, added to the log-probability of ``model``; ``None``: the
    difference alone, as in the paper. ``owner`` owns the mask, where ``alpha`` is above 0.
    """
    share = 0.0 if unwanted is None else 1.0 if strength is None else strength
    own = 1.0 if unwanted is None or strength is not None else 0.0
    weights: dict[Learner, float] = {model: own + share}
    if unwanted is not None:
        weights[unwanted] = weights.get(unwanted, 0.0) - share
    alphas = {owner: alpha} if alpha else {}
    return [
        Weighted(each, weights.get(each, 0.0), alphas.get(each, 0.0))
        for each in dict.fromkeys([*weights, *alphas])
        if weights.get(each) or alphas.get(each)
    ]


def contrasted_sentences(weighted: Sequence[Weighted], sentences: int, longest: int, seed: int) -> list[Words]:
    """Sample sentences from the whole distribution; each is cut off after ``longest`` words or pieces."""
    first = weighted[0].model
    if not isinstance(first, CausalModel):
        contrasted = ContrastedWords(weighted)
        return sample_words(contrasted, Drawing(sentences, len(contrasted.vocabulary), longest, seed))
    network = JoinedModels([(each.model.network, each.weight, each.alpha) for each in weighted])
    return sample_pieces(first.with_network(network), Drawing(sentences, first.vocabulary_size, longest, seed))
