"""How probable a causal language model finds each target of a text.

The targets are those of every kind of model, normalised words and sentence ends, so perplexity a word and bits a
character compare; a word's probability is that of all its pieces, its leading space among them. No word is unknown.
"""

from pathlib import Path

import numpy as np

from tasks.language_model.causal_lm.folder import load
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.word_pieces import OpenVocabulary
from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.evaluation.target_scores import TargetScores
from tasks.language_model.transformer.windows import overlap_of


def score_text(model: str | Path, text: str | Path, markers: MarkerRule) -> tuple[TargetScores, Protocol]:
    """Score a plain text file by the model of a folder; ``markers`` is the evaluation's rule for the protocol."""
    causal, _ = load(model)
    if causal.model.device.type == "cpu":
        from tasks.packed_linear import pack_linear_layers

        pack_linear_layers(causal.model)
    vocabulary = OpenVocabulary()
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
