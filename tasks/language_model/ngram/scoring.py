"""How probable an n-gram model finds each target of a text: the same protocol as the Transformer's."""

from pathlib import Path

from tasks.language_model.encoded_text import encode_text
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.evaluation.target_scores import TargetScores
from tasks.language_model.ngram.folder import load
from tasks.language_model.vocabulary import UNKNOWN_ID


def score_text(model: str | Path, text: str | Path, markers: MarkerRule) -> tuple[TargetScores, Protocol]:
    """Score a plain text file by the model of a folder; ``markers`` is the evaluation's rule for the protocol."""
    mixture, vocabulary = load(model)
    encoded = encode_text(text, vocabulary)
    is_target = encoded.is_target()
    scores = TargetScores(
        log_probability=mixture.log_probabilities(encoded)[is_target],
        known=encoded.tokens[is_target] != UNKNOWN_ID,
        marker_log_probability=mixture.marker_log_probabilities(encoded)[is_target],
    )
    protocol = Protocol(
        vocabulary=vocabulary.hash,
        vocabulary_size=len(vocabulary),
        unknown_rate=encoded.unknown_words / encoded.words,
        maximum_tokens=None,
        stride=None,
        markers=markers,
    )
    return scores, protocol
