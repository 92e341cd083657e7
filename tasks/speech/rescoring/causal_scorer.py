"""Hypotheses scored by a causal language model of Hugging Face's, with shared prefixes computed once.

Words become pieces as for perplexities (``tasks.language_model.causal_lm.word_pieces``), so a hypothesis has the
probability that it would have as a line of text.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.word_pieces import OpenVocabulary
from tasks.packed_linear import pack_linear_layers
from tasks.speech.rescoring.language_model_scorer import (
    LanguageModelScorer,
    Precision,
    Words,
    encode_sentences,
)
from tasks.speech.rescoring.named_causal_model import load_causal
from tasks.speech.rescoring.prefix_tree import TreeBatch
from tasks.speech.rescoring.shared_prefixes import score_sequences

_BATCH_PIECES = {"cpu": 512, "cuda": 8192}
_CHUNK = 64
"""Positions whose scores over the whole vocabulary are in float32 at once."""
_SAME = 1e-3
"""Nats a piece: a model that takes trees gives them the scores of single sequences, but for rounding."""
_PROBE: list[Words] = [("the", "end", "of"), ("the", "end", "and"), ("the", "and"), ("of",)]


class CausalScorer(LanguageModelScorer):
    """A model folder of kind ``causal_lm``, a model as it comes (folder, package, name on the hub), or one at hand."""

    def __init__(self, model: str | Path | CausalModel, precision: Precision = "auto") -> None:
        self._causal = model if isinstance(model, CausalModel) else load_causal(str(model), precision)
        body = self._causal.model
        body.eval()
        if precision != "auto":
            body.to(getattr(torch, precision))
        if body.device.type == "cpu" and body.dtype == torch.float32:
            pack_linear_layers(body)
        self.vocabulary = self._causal.pieces.hash
        self.shares_prefixes = self._takes_trees()
        """Whether the model can read a tree; one that cannot (without positions or masks) scores each hypothesis."""

    def log_probabilities(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """As the base class says. What is longer than the model's window is scored by the model's own code."""
        if not self.shares_prefixes:
            return self._one_by_one(groups)
        return self._as_trees(groups)

    def unknown_words(self, words: Words) -> int:
        """None: every word can be spelled."""
        return 0

    def _as_trees(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        pieces = self._causal.pieces
        words = sorted({word for group in groups for hypothesis in group for word in hypothesis})
        table = dict(zip(words, pieces.of_words(words), strict=True))
        found = [np.zeros(len(group)) for group in groups]
        # Two divisions into words can have the same pieces.
        sequences: list[dict[tuple[int, ...], list[int]]] = [{} for _ in groups]
        long: list[tuple[int, int]] = []
        for number, group in enumerate(groups):
            for place, hypothesis in enumerate(group):
                inner = [piece for word in hypothesis for piece in table[word]]
                ids = (*pieces.start, *inner, *pieces.end)
                if len(ids) - 1 > self._causal.maximum_pieces:
                    long.append((number, place))
                else:
                    sequences[number].setdefault(ids, []).append(place)
        batch_pieces = _BATCH_PIECES.get(self._causal.model.device.type, _BATCH_PIECES["cuda"])
        sums = score_sequences([list(group) for group in sequences], self._scores_of, batch_pieces)
        given = self._of_start()
        for scores, sequences_of, of_group in zip(found, sequences, sums, strict=True):
            for places, value in zip(sequences_of.values(), of_group.tolist(), strict=True):
                scores[places] = value - given
        if long:
            (values,) = self._one_by_one([[groups[number][place] for number, place in long]])
            for (number, place), value in zip(long, values.tolist(), strict=True):
                found[number][place] = value
        return found

    def _of_start(self) -> float:
        """What the pieces before a sentence cost behind the first of them: they are no targets."""
        start = self._causal.pieces.start
        return float(score_sequences([[start]], self._scores_of, len(start))[0][0]) if len(start) > 1 else 0.0

    @torch.inference_mode()
    def _scores_of(self, batch: TreeBatch) -> np.ndarray:
        model = self._causal.model
        tokens, depth, visible, places, targets = (
            torch.from_numpy(values).to(model.device)
            for values in (batch.tokens, batch.depth, batch.visible[:, None], batch.edge_place, batch.edge_token)
        )
        # Added to attention's scores (B, 1, T, T): not every kind of attention takes a mask of truth values.
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
        words = self._causal.word_log_probabilities(self._causal.pieces.of_text(text, vocabulary), len(text.tokens))
        sums = np.add.reduceat(words, text.offsets[:-1]) if flat else np.zeros(0)
        return np.split(sums, np.cumsum([len(group) for group in groups])[:-1])

    def _takes_trees(self) -> bool:
        try:
            (shared,) = self._as_trees([_PROBE])
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            return False  # the model takes no positions, or no mask of this shape
        (alone,) = self._one_by_one([_PROBE])
        tolerance = _SAME if self._causal.model.dtype == torch.float32 else 100 * _SAME
        return bool(np.allclose(shared, alone, rtol=tolerance, atol=10 * tolerance))
