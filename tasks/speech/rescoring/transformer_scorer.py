"""Hypotheses scored by the word-level Transformer, with shared prefixes computed once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tasks.language_model.transformer.blockwise_log_probabilities import (
    LARGE_VOCABULARY,
    blockwise_log_probabilities,
)
from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities
from tasks.language_model.transformer.folder import load_model
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.processor_products import has_products, laid_out_layers
from tasks.language_model.transformer.scoring import score_targets
from tasks.language_model.vocabulary import END_ID, START_ID, Vocabulary
from tasks.speech.rescoring.language_model_scorer import LanguageModelScorer, Words, encode_sentences, sentence_sums
from tasks.speech.rescoring.prefix_tree import TreeBatch
from tasks.speech.rescoring.shared_prefixes import score_sequences

BATCH_TOKENS = 4096
"""Nodes of prefix trees that the model reads at once."""


class TransformerScorer(LanguageModelScorer):
    """The model of a folder, or one at hand with its vocabulary.

    Arithmetic is float32, as in the model's own scoring. A hypothesis is read by itself, also by a model that was
    trained on running text: nothing is known of what was said before it.
    """

    def __init__(self, model: str | Path | TransformerLanguageModel, vocabulary: Vocabulary | None = None) -> None:
        if isinstance(model, TransformerLanguageModel):
            if vocabulary is None:
                raise TypeError("a model at hand needs its vocabulary")
            self._model, self._words = model, vocabulary
        else:
            self._model, self._words = load_model(model)
            if torch.cuda.is_available():
                self._model = self._model.cuda()
        self._model.eval()
        self.vocabulary = self._words.hash

    def log_probabilities(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """As the base class says. What is longer than the model's positions is scored by the model's own code."""
        maximum = self._model.architecture.maximum_tokens
        found = [np.zeros(len(group)) for group in groups]
        # Hypotheses that differ in unknown words alone are one sequence.
        sequences: list[dict[tuple[int, ...], list[int]]] = [{} for _ in groups]
        long: list[tuple[int, int]] = []
        for number, group in enumerate(groups):
            for place, words in enumerate(group):
                if len(words) + 1 > maximum:
                    long.append((number, place))
                    continue
                ids = (START_ID, *self._words.encode(words), END_ID)
                sequences[number].setdefault(ids, []).append(place)
        with laid_out_layers(self._model, BATCH_TOKENS):
            sums = score_sequences([list(distinct) for distinct in sequences], self._scores_of, BATCH_TOKENS)
        for scores, distinct, of_group in zip(found, sequences, sums, strict=True):
            for places, value in zip(distinct.values(), of_group.tolist(), strict=True):
                scores[places] = value
        if long:
            text = encode_sentences([groups[number][place] for number, place in long], self._words)
            with _sentence_by_sentence(self._model):
                values = score_targets(self._model, text).log_probability
            for (number, place), value in zip(long, sentence_sums(values, text).tolist(), strict=True):
                found[number][place] = value
        return found

    def unknown_words(self, words: Words) -> int:
        """As the base class says."""
        return sum(word not in self._words.ids for word in words)

    @torch.inference_mode()
    def _scores_of(self, batch: TreeBatch) -> np.ndarray:
        model, projection = self._model, self._model.embedding.weight
        unseen = torch.from_numpy(~batch.visible[:, None])
        # Added to the scores: every layer would make this of booleans again.
        visible = torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf).to(projection)  # (B, 1, T, T)
        tokens, depth, places, targets = (
            torch.from_numpy(values).to(projection.device)
            for values in (batch.tokens, batch.depth, batch.edge_place, batch.edge_token)
        )
        hidden = model.embedding(tokens) + model.positions(depth)  # (B, T, D)
        for block in model.blocks:
            hidden = block(hidden, visible)
        hidden = model.final_norm(hidden).flatten(0, 1)  # (B x T, D)
        return _log_probabilities(hidden, projection, places, targets).double().cpu().numpy()


def _log_probabilities(hidden: Tensor, projection: Tensor, places: Tensor, targets: Tensor) -> Tensor:
    """Log-probability of each target behind the hidden state at its place (E,), in nats.

    Targets behind the same prefix share its normaliser, which costs a product with the whole vocabulary. Of a large
    vocabulary the normaliser is computed for each target by itself, with that target's share in float32.
    """
    scores_of = blockwise_log_probabilities if has_products(projection) else chunked_log_probabilities
    if len(projection) > LARGE_VOCABULARY:
        return scores_of(hidden[places], projection, targets)
    used, number = torch.unique(places, return_inverse=True)  # (N,), (E,)
    some = torch.empty_like(used)
    some[number] = targets  # any of the targets behind a prefix tells its normaliser
    states = hidden[used]  # (N, D)
    normalisers = (states * projection[some]).sum(1) - scores_of(states, projection, some)  # (N,)
    return (states[number] * projection[targets]).sum(1) - normalisers[number]


@contextmanager
def _sentence_by_sentence(model: TransformerLanguageModel) -> Iterator[None]:
    """Have a model of running text read sentences inside the block."""
    architecture = model.architecture
    model.architecture = architecture.model_copy(update={"context": "sentence"})
    try:
        yield
    finally:
        model.architecture = architecture
