"""How probable a model finds each sentence of a text."""

import numpy as np
import torch

from tasks.language_model.batching import batches_by_length, make_batch
from tasks.language_model.chunked_cross_entropy import chunked_log_probabilities
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.sentence_scores import SentenceScores
from tasks.language_model.transformer import TransformerLanguageModel
from tasks.language_model.vocabulary import UNKNOWN_ID
from tasks.language_model.windows import divide, overlap_of

BATCH_TOKENS = 4096


@torch.no_grad()
def score_sentences(model: TransformerLanguageModel, text: EncodedText) -> SentenceScores:
    """Score every sentence by itself: no context reaches across sentences.

    Arithmetic is float32, sums are float64. A sentence longer than the model's positions is read in windows that
    overlap by half, each target scored once.
    """
    from tqdm import tqdm

    maximum = model.architecture.maximum_tokens
    windows = divide(text, maximum, overlap_of(maximum))
    is_target = text.is_target()
    counts = np.zeros((2, text.sentences), dtype=np.int64)
    sums = np.zeros((2, text.sentences))
    model.eval()
    batches = batches_by_length(windows, BATCH_TOKENS)
    for chosen in tqdm(batches, desc="scoring", unit="batch", disable=None, leave=False):
        batch = make_batch(text, is_target, windows, chosen)
        hidden = model(batch.tokens).flatten(0, 1).index_select(0, batch.positions)  # (N, D)
        scores = chunked_log_probabilities(hidden, model.embedding.weight, batch.targets).double().numpy()  # (N,)
        sentences = windows.sentence[chosen][batch.rows.numpy()]  # (N,)
        known = (batch.targets != UNKNOWN_ID).numpy()
        for row, counted in enumerate((np.ones_like(known), known)):
            counts[row] += np.bincount(sentences[counted], minlength=text.sentences)
            sums[row] += np.bincount(sentences[counted], weights=scores[counted], minlength=text.sentences)
    return SentenceScores(text.lines, counts[0], sums[0], counts[1], sums[1])
