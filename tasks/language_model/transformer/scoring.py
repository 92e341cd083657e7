"""``WordTransformer``: the word-level Transformer as a language model; shared prefixes are computed once."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.language_model.encoded_text import EncodedText, overlap_of
from tasks.language_model.language_models import NextWords, Words, encode_sentences, sentence_sums
from tasks.language_model.learners import Learner
from tasks.language_model.prefix_trees import TreeBatch, score_groups
from tasks.language_model.transformer.batching import Batch, batches_by_length, divide, make_batch, target_places
from tasks.language_model.transformer.chunked_cross_entropy import (
    chunked_class_probabilities,
    chunked_cross_entropy,
    chunked_log_probabilities,
)
from tasks.language_model.transformer.joined import joined, steered
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.processor_products import (
    LARGE_VOCABULARY,
    blockwise_log_probabilities,
    has_products,
    laid_out_layers,
)
from tasks.language_model.vocabulary import END_ID, MARKERS, SPECIAL_TOKENS, START_ID, Vocabulary
from tasks.torch_setup import has_bfloat16

BATCH_TOKENS = 2048
"""Targets in one batch."""
BATCH_NODES = 4096
"""Nodes of prefix trees in one batch."""
_MARKER_IDS = slice(SPECIAL_TOKENS.index(MARKERS[0]), SPECIAL_TOKENS.index(MARKERS[-1]) + 1)


class WordTransformer(Learner):
    """The word-level Transformer with its vocabulary. Arithmetic of scores is float32."""

    def __init__(self, network: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
        self.network, self.vocabulary = network.eval(), vocabulary
        self.vocabulary_hash, self.vocabulary_size = vocabulary.hash, len(vocabulary)
        self.longest = network.architecture.maximum_tokens

    def scores_of_ids(self, text: EncodedText) -> tuple[np.ndarray, np.ndarray | None]:
        """See ``LanguageModel``. With ``languages``, each word's language is predicted first."""
        languages = self.network.languages
        if languages is None:
            scores = _scores(self.network, text)
        else:
            scores = _scores(self.network, text, languages.classes)
            scores[0] += languages.correction(languages.expected(text), scores[2:].T, text.tokens)
        return scores[0], scores[1]

    def next_words(self) -> NextWords:
        """See ``LanguageModel``."""
        from tasks.language_model.transformer.next_words import TransformerNextWord

        return TransformerNextWord(self.network, self.vocabulary)

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """See ``LanguageModel``. Sentences longer than the model's positions are scored like a text. So are all
        sentences where positions are rotary or the model uses languages."""
        model = self.network
        shared = model.is_stepwise and model.languages is None
        # Hypotheses that differ only in unknown words are one sequence.
        sequences = [[(START_ID, *self.vocabulary.encode(words), END_ID) for words in group] for group in groups]

        def scores_alone(long: list[tuple[int, int]]) -> np.ndarray:
            text = encode_sentences([groups[number][place] for number, place in long], self.vocabulary)
            return sentence_sums(self.score_targets(text).log_probability, text)

        with laid_out_layers(model, BATCH_NODES):
            return score_groups(
                sequences,
                self._scores_of,
                BATCH_NODES,
                longest=self.longest if shared else 0,
                scores_alone=scores_alone,
            )

    @torch.inference_mode()
    def _scores_of(self, batch: TreeBatch) -> np.ndarray:
        model, projection = self.network, self.network.embedding.weight
        unseen = torch.from_numpy(~batch.visible[:, None])
        # A float mask, added to the scores: every layer would convert a boolean mask again.
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

    def copy(self) -> "WordTransformer":
        """See ``Learner``."""
        return WordTransformer(copy.deepcopy(self.network), self.vocabulary)

    def states(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        hidden: Tensor = self.network(batch.tokens)
        return hidden.flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """See ``Learner``."""
        return functional.linear(states, self.network.embedding.weight)

    def log_probability(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        with torch.no_grad():
            states = self.states(batch)
        return chunked_log_probabilities(states, self.network.embedding.weight, batch.targets, _arithmetic())

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """See ``Learner``."""
        projection = self.network.embedding.weight
        return chunked_cross_entropy(self.states(batch), projection, batch.targets, weights, _arithmetic())

    def steered(self, down: Tensor, up: Tensor) -> "WordTransformer":
        """See ``Learner``."""
        return WordTransformer(steered(self.network, down, up), self.vocabulary)

    def joined(self, others: Sequence[tuple["WordTransformer", float]], weight: float) -> "WordTransformer":
        """See ``Learner``. The result is a Transformer as wide as all together."""
        parts = [(self.network, weight), *((other.network, share) for other, share in others)]
        return WordTransformer(joined(parts), self.vocabulary)


def _arithmetic() -> torch.dtype:
    """Data type of the products with the vocabulary, as in other training."""
    return torch.bfloat16 if has_bfloat16() else torch.float32


def class_probabilities(model: TransformerLanguageModel, text: EncodedText, classes: np.ndarray) -> np.ndarray:
    """The probability of each class of words at each id of a text (N, C), without language factors; ``classes``
    (V, C): share of each class in each word."""
    return _scores(model, text, classes)[2:].T


@torch.no_grad()
def _scores(model: TransformerLanguageModel, text: EncodedText, classes: np.ndarray | None = None) -> np.ndarray:
    """Scores by place in ``text.tokens``, (2 + C, N): log-probability of each target, log-probability of all
    markers together at its place, and probability of each class of words.

    Arithmetic is float32, sums are float64. Sentences longer than the model's positions are read in windows that
    overlap by half, each target scored once.
    """
    from tqdm import tqdm

    maximum = model.architecture.maximum_tokens
    windows = divide(text, maximum, overlap_of(maximum))
    projection = model.embedding.weight
    is_target = text.is_target()
    of_classes = None if classes is None else torch.from_numpy(classes).to(projection)  # (V, C)
    scores = np.zeros((2 if classes is None else 2 + classes.shape[1], len(text.tokens)))
    model.eval()
    batches = batches_by_length(windows, BATCH_TOKENS)
    log_probabilities = blockwise_log_probabilities if has_products(projection) else chunked_log_probabilities
    with laid_out_layers(model, BATCH_TOKENS):
        for chosen in tqdm(batches, desc="scoring", unit="batch", disable=None, leave=False):
            batch = make_batch(text, is_target, windows, chosen)
            places = target_places(batch, windows.first[chosen])
            batch = batch.to(projection.device)
            hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)  # (N, D)
            if of_classes is None:
                own, found = log_probabilities(hidden, projection, batch.targets), hidden[:, :0]  # (N,), (N, 0)
            else:
                own, found = chunked_class_probabilities(hidden, projection, batch.targets, of_classes)
            of_markers = _marker_log_probabilities(hidden, projection, batch.targets, own)  # (N,)
            scores[:, places] = torch.stack([own, of_markers, *found.T]).double().cpu().numpy()
    return scores


def _marker_log_probabilities(
    hidden: torch.Tensor, projection: torch.Tensor, targets: torch.Tensor, log_probability: torch.Tensor
) -> torch.Tensor:
    """Log-probability (N,) of all markers together, from the target's log-probability: the normaliser is the same."""
    target_scores = (hidden * projection[targets]).sum(1)
    marker_scores = torch.logsumexp(hidden @ projection[_MARKER_IDS].t(), dim=1)
    # Rounding must not make it a probability of 1, which would leave nothing for the other tokens.
    return (marker_scores - target_scores + log_probability).clamp(max=-1e-6)


def _log_probabilities(hidden: Tensor, projection: Tensor, places: Tensor, targets: Tensor) -> Tensor:
    """Log-probability of each target given the hidden state at its place (E,), in nats.

    Targets after the same prefix share its normaliser, which costs a product with the whole vocabulary. For a large
    vocabulary it is computed for each target, with that target's share in float32.
    """
    scores_of = blockwise_log_probabilities if has_products(projection) else chunked_log_probabilities
    if len(projection) > LARGE_VOCABULARY:
        return scores_of(hidden[places], projection, targets)
    used, number = torch.unique(places, return_inverse=True)  # (N,), (E,)
    some = torch.empty_like(used)
    some[number] = targets  # any target after a prefix gives its normaliser
    states = hidden[used]  # (N, D)
    normalisers = (states * projection[some]).sum(1) - scores_of(states, projection, some)  # (N,)
    return (states[number] * projection[targets]).sum(1) - normalisers[number]
