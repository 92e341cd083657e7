"""How probable the Transformer finds each target of a text."""

from pathlib import Path

import numpy as np
import torch
from torch import distributed

from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
from tasks.language_model.evaluation.target_scores import TargetScores
from tasks.language_model.transformer.batching import Batch, batches_by_length, make_batch
from tasks.language_model.transformer.blockwise_log_probabilities import blockwise_log_probabilities
from tasks.language_model.transformer.chunked_cross_entropy import chunked_log_probabilities
from tasks.language_model.transformer.folder import load_model
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.transformer.processor_products import has_products, laid_out_layers
from tasks.language_model.transformer.windows import overlap_of, windows_of
from tasks.language_model.vocabulary import MARKERS, SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary

BATCH_TOKENS = 2048
"""Targets whose hidden states are computed at once."""
_MARKER_IDS = slice(SPECIAL_TOKENS.index(MARKERS[0]), SPECIAL_TOKENS.index(MARKERS[-1]) + 1)


def score_text(model: str | Path, text: str | Path, markers: MarkerRule) -> tuple[TargetScores, Protocol]:
    """Score a plain text file by the model of a folder; ``markers`` is the evaluation's rule for the protocol."""
    transformer, vocabulary = load_model(model)
    if torch.cuda.is_available():
        transformer = transformer.cuda()
    encoded = encode_text(text, vocabulary)
    return score_targets(transformer, encoded), protocol_of(vocabulary, transformer, encoded, markers)


def protocol_of(
    vocabulary: Vocabulary, model: TransformerLanguageModel, text: EncodedText, markers: MarkerRule
) -> Protocol:
    """What a word-level Transformer and its text decide of the protocol."""
    maximum = model.architecture.maximum_tokens
    return Protocol(
        vocabulary=vocabulary.hash,
        vocabulary_size=len(vocabulary),
        unknown_rate=text.unknown_words / text.words,
        maximum_tokens=maximum,
        stride=maximum - overlap_of(maximum),
        markers=markers,
        context="stream" if model.architecture.context == "stream" else "sentence",
    )


@torch.no_grad()
def score_targets(model: TransformerLanguageModel, text: EncodedText) -> TargetScores:
    """Score every sentence by itself, or the running text where that is the model's context.

    Arithmetic is float32, sums are float64. What is longer than the model's positions is read in windows that overlap
    by half, each target scored once. Where processes work together (``torch.distributed``), each scores its
    share of the batches and all get the whole.
    """
    from tqdm import tqdm

    maximum = model.architecture.maximum_tokens
    windows = windows_of(text, model.architecture, overlap_of(maximum))
    projection = model.embedding.weight
    is_target = text.is_target()
    # By place in text.tokens; what another process scores stays 0, so that sums over processes are the whole.
    scores = np.zeros((2, len(text.tokens)))
    model.eval()
    rank, processes = (distributed.get_rank(), distributed.get_world_size()) if _together() else (0, 1)
    batches = batches_by_length(windows, BATCH_TOKENS)[rank::processes]
    silent = None if rank == 0 else True
    log_probabilities = blockwise_log_probabilities if has_products(projection) else chunked_log_probabilities
    with laid_out_layers(model, BATCH_TOKENS):
        for chosen in tqdm(batches, desc="scoring", unit="batch", disable=silent, leave=False):
            batch = make_batch(text, is_target, windows, chosen)
            places = _places(batch, windows.first[chosen])
            batch = batch.to(projection.device)
            hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)  # (N, D)
            own = log_probabilities(hidden, projection, batch.targets)  # (N,)
            of_markers = _marker_log_probabilities(hidden, projection, batch.targets, own)  # (N,)
            scores[:, places] = torch.stack([own, of_markers]).double().cpu().numpy()
    if processes > 1:
        distributed.all_reduce(torch.from_numpy(scores))
    return TargetScores(
        log_probability=scores[0, is_target],
        known=text.tokens[is_target] != UNKNOWN_ID,
        marker_log_probability=scores[1, is_target],
    )


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _places(batch: Batch, first: np.ndarray) -> np.ndarray:
    """Index into the text's ids of each target of a batch whose windows begin at ``first``."""
    columns = batch.positions.numpy() % batch.tokens.shape[1]
    return first[batch.rows.numpy()] + columns + 1


def _marker_log_probabilities(
    hidden: torch.Tensor, projection: torch.Tensor, targets: torch.Tensor, log_probability: torch.Tensor
) -> torch.Tensor:
    """Log-probability (N,) of all markers together, from the target's: both have the same normaliser."""
    target_scores = (hidden * projection[targets]).sum(1)
    marker_scores = torch.logsumexp(hidden @ projection[_MARKER_IDS].t(), dim=1)
    # Rounding must not make a probability of 1 of it, which would leave nothing for the other tokens.
    return (marker_scores - target_scores + log_probability).clamp(max=-1e-6)
