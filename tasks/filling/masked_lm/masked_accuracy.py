"""How well a masked LM guesses single masked words of held-out text: loss, perplexity, accuracy.

These numbers compare training runs of one filler. They do not say how good its substitutes are.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from tasks.errors import CorpusError, ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_batches import WordMasker
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.padding_probe import mixes_padding

_MASKED_SHARE = 0.12
_SEED = 1
LONGEST_SENTENCE = 128
_BATCH_SENTENCES = 32


def masked_accuracy(model: Any, tokenizer: Any, lines: Sequence[str], *, name: str) -> dict[str, Any]:
    """Guess the same words of the same lines every time, in float32.

    Returns ``valid_words`` (how many), ``valid_loss`` (nats per word over the whole vocabulary), ``valid_perplexity``,
    ``valid_top_1_accuracy`` and ``valid_top_10_accuracy`` (shares). Raises ``CorpusError`` where no line has a word to
    mask, and ``ModelError`` where the model's scores are not numbers.
    """
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=name), model.config.vocab_size)
    language_model = MaskedLanguageModel(model, tokenizer, name)
    sentences = masker.encode(lines, min(LONGEST_SENTENCE, language_model.frame.longest))
    if not sentences:
        raise CorpusError(
            f"none of the {len(lines):,} held-out lines (--valid) has a word that filler {name!r} can mask; take "
            "running text in its language and script"
        )
    return accuracy_of_pieces(model, masker, sentences, equal_lengths=mixes_padding(language_model), name=name)


def accuracy_of_pieces(
    model: Any, masker: WordMasker, sentences: Sequence[Sequence[int]], *, equal_lengths: bool, name: str
) -> dict[str, Any]:
    """As ``masked_accuracy``, of sentences that are pieces already; mask tokens that stand in them are context.

    ``equal_lengths``: only sentences of one length share a batch, for models that mix padding into the sentence
    (``padding_probe``).
    """
    import torch

    from tasks.filling.masked_lm.marker_scores import earliest_cut, scores_at

    random = np.random.default_rng(_SEED)
    loss = 0.0
    words = first = among_ten = 0
    model.eval()
    cut = earliest_cut(model)
    for chosen in _batches(sentences, equal_lengths):
        batch = masker.batch(chosen, _MASKED_SHARE, random)
        with torch.inference_mode():
            scores = scores_at(model, batch.pieces, batch.attention, batch.rows, batch.positions, cut=cut)  # (N, V)
        loss += float(torch.nn.functional.cross_entropy(scores, batch.targets, reduction="sum"))
        best = scores.topk(10).indices  # (N, 10)
        words += len(batch.targets)
        first += int((best[:, 0] == batch.targets).sum())
        among_ten += int((best == batch.targets[:, None]).any(dim=1).sum())
    if not math.isfinite(loss):
        raise ModelError(
            f"filler {name!r} gives scores that are not numbers (NaN or infinity) for the validation text; its weights "
            "are damaged: fetch the model again, or train it with a lower learning rate"
        )
    return {
        "valid_words": words,
        "valid_loss": loss / words,
        "valid_perplexity": math.exp(loss / words),
        "valid_top_1_accuracy": first / words,
        "valid_top_10_accuracy": among_ten / words,
    }


def _batches(sentences: Sequence[Sequence[int]], equal_lengths: bool) -> Iterator[list[Sequence[int]]]:
    """All sentences, short ones first."""
    for _, group in groupby(sorted(sentences, key=len), key=len if equal_lengths else lambda _: 0):
        alike = list(group)
        for start in range(0, len(alike), _BATCH_SENTENCES):
            yield alike[start : start + _BATCH_SENTENCES]
