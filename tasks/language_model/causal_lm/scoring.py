"""``CausalScorer``: score texts and sentences with a causal language model; shared prefixes are computed once.

The targets are the same for every kind of model: normalised words and sentence ends. So perplexity per word and bits
per character are comparable. A word's probability covers all its pieces, with its leading space. No word is unknown.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from tasks.language_model.causal_lm.folder import load_by_name
from tasks.language_model.causal_lm.model import CausalModel, OpenVocabulary
from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.language_models import Drawing, Precision, TargetScores, Words, encode_sentences
from tasks.language_model.prefix_trees import TreeBatch, score_groups, score_sequences
from tasks.language_model.sampling import sample_pieces
from tasks.language_model.transformer.batching import overlap_of
from tasks.packed_linear import pack_linear_layers

if TYPE_CHECKING:
    from tasks.language_model.causal_lm.next_words import WholeWords

_CHUNK = 64
"""Number of positions whose scores over the whole vocabulary are converted to float32 at once."""
_SAME = 1e-3
"""Tolerance, in nats a piece, between tree scores and single-sequence scores: the rounding error."""
_PROBE: list[Words] = [("the", "end", "of"), ("the", "end", "and"), ("the", "and"), ("of",)]


class CausalScorer:
    """See ``LanguageModel``."""

    def __init__(self, causal: CausalModel, precision: Precision = "auto") -> None:
        self.causal = causal
        body = causal.model
        body.eval()
        if precision != "auto":
            body.to(getattr(torch, precision))
        pack_linear_layers(body)
        self.vocabulary_hash = causal.pieces.hash

    @classmethod
    def load(cls, model: str | Path, precision: Precision = "auto") -> "CausalScorer":
        """Load a model folder of kind ``causal_lm``, or an unchanged model (folder, package, hub name)."""
        return cls(load_by_name(str(model), precision), precision)

    @cached_property
    def shares_prefixes(self) -> bool:
        """Whether the model can read a prefix tree; without positions or masks it scores each sentence separately."""
        try:
            (shared,) = self._as_trees([_PROBE])
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            return False  # the model takes no positions, or no mask of this shape
        (alone,) = self._one_by_one([_PROBE])
        tolerance = _SAME if self.causal.model.dtype == torch.float32 else 100 * _SAME
        return bool(np.allclose(shared, alone, rtol=tolerance, atol=10 * tolerance))

    def score_text(
        self, text: str | Path | Sequence[str], markers: MarkerRule = "in_vocabulary"
    ) -> tuple[TargetScores, Protocol]:
        """See ``LanguageModel``."""
        causal, vocabulary = self.causal, OpenVocabulary()
        encoded = encode_text(text, vocabulary)
        protocol = Protocol(
            vocabulary=causal.pieces.hash,
            vocabulary_size=causal.pieces.size,
            unknown_rate=None,
            maximum_tokens=causal.maximum_pieces,
            stride=causal.maximum_pieces - overlap_of(causal.maximum_pieces),
            markers=markers,
        )
        return score_targets(causal, encoded, vocabulary), protocol

    def next_words(self) -> "WholeWords":
        """See ``LanguageModel``."""
        from tasks.language_model.causal_lm.next_words import WholeWords

        return WholeWords(self)

    def sample(self, drawing: Drawing) -> list[Words]:
        """See ``LanguageModel``."""
        return sample_pieces(self.causal, drawing)

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """See ``LanguageModel``. A sentence longer than the model's window is scored in windows."""
        return self._as_trees(groups) if self.shares_prefixes else self._one_by_one(groups)

    def unknown_words(self, words: Words) -> int:
        """0: every word can be spelled."""
        return 0

    def _as_trees(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        pieces = self.causal.pieces
        words = sorted({word for group in groups for hypothesis in group for word in hypothesis})
        table = dict(zip(words, pieces.of_words(words), strict=True))
        # Different word sequences can have the same pieces.
        sequences = [
            [(*pieces.start, *(piece for word in one for piece in table[word]), *pieces.end) for one in group]
            for group in groups
        ]

        def scores_alone(long: list[tuple[int, int]]) -> np.ndarray:
            return self._one_by_one([[groups[number][place] for number, place in long]])[0]

        longest, batch_pieces = self.causal.maximum_pieces, self.causal.batch_pieces
        return score_groups(sequences, longest, self._scores_of, scores_alone, batch_pieces, self._of_start())

    def _of_start(self) -> float:
        """Log-probability of the pieces before a sentence given the first; it is subtracted, as they are no targets."""
        start = self.causal.pieces.start
        return float(score_sequences([[start]], self._scores_of, len(start))[0][0]) if len(start) > 1 else 0.0

    @torch.inference_mode()
    def _scores_of(self, batch: TreeBatch) -> np.ndarray:
        model = self.causal.model
        tokens, depth, visible, places, targets = (
            torch.from_numpy(values).to(model.device)
            for values in (batch.tokens, batch.depth, batch.visible[:, None], batch.edge_place, batch.edge_token)
        )
        # A float mask, added to the attention scores (B, 1, T, T): not every attention takes a boolean mask.
        hidden = torch.zeros(visible.shape, dtype=model.dtype, device=model.device)
        hidden.masked_fill_(~visible, torch.finfo(model.dtype).min)
        logits = model(input_ids=tokens, attention_mask=hidden, position_ids=depth, use_cache=False).logits.flatten(
            0, 1
        )
        normalisers = torch.cat([chunk.float().logsumexp(1) for chunk in logits.split(_CHUNK)])  # (B x T,)
        return (logits[places, targets].float() - normalisers[places]).double().cpu().numpy()

    def _one_by_one(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        vocabulary = OpenVocabulary()
        flat = [hypothesis for group in groups for hypothesis in group]
        text = encode_sentences(flat, vocabulary)
        words = self.causal.word_log_probabilities(self.causal.pieces.of_text(text, vocabulary), len(text.tokens))
        sums = np.add.reduceat(words, text.offsets[:-1]) if flat else np.zeros(0)
        return np.split(sums, np.cumsum([len(group) for group in groups])[:-1])


def score_targets(causal: CausalModel, text: EncodedText, vocabulary: OpenVocabulary) -> TargetScores:
    """Score the targets of a text over the open vocabulary."""
    pieces = causal.pieces.of_text(text, vocabulary)
    is_target = text.is_target()
    words = causal.word_log_probabilities(pieces, len(text.tokens))
    of_markers = None
    if causal.pieces.markers:
        first = causal.log_probabilities(pieces, markers=True, title="scoring markers")[pieces.is_first]
        of_markers = np.minimum(first[is_target], -1e-12)
    return TargetScores(
        log_probability=words[is_target],
        known=np.ones(int(is_target.sum()), dtype=bool),
        marker_log_probability=of_markers,
    )
