"""Training a masked-LM head on a pretrained body that comes without one.

Packages bring sentence encoders: real pretrained bodies, but no head. The fresh weights start where a head may well end
up: the transform as the identity, the decoder tied to the body's own word embeddings, its bias at the words' log
frequency. Then head and body learn together, each at its own rate, from generic text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import CorpusError
from tasks.filling.filler_settings import HeadTraining
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_batches import WordMasker
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_lm.masked_training import enough_lines, train_on_masked_words
from tasks.filling.masked_lm.padding_probe import mixes_padding


def initialise_fresh_weights(
    model: Any, missing: Sequence[str], piece_counts: np.ndarray, random: np.random.Generator
) -> list[str]:
    """Set the weights that the source did not hold, and return their names.

    ``piece_counts``: ``(V,)`` how often each piece is a word to predict. A square matrix becomes the identity, a bias
    over the vocabulary the log frequencies, a matrix over the vocabulary the word embeddings; norms are neutral and
    other biases 0. Any other matrix is drawn from a normal distribution of the model's own width.
    """
    import torch

    names = []
    embeddings = model.get_input_embeddings().weight  # (V, H)
    frequencies = (piece_counts + 0.1) / (piece_counts + 0.1).sum()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name not in missing:
                continue
            names.append(name)
            if weight.ndim == 2 and weight.shape[0] == weight.shape[1]:
                weight.copy_(torch.eye(weight.shape[0]))
            elif weight.shape == embeddings.shape:
                weight.copy_(embeddings)
            elif weight.ndim == 1 and len(weight) == len(frequencies):
                weight.copy_(torch.from_numpy(np.log(frequencies)))
            elif weight.ndim == 1:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
            else:
                width = getattr(model.config, "initializer_range", 0.02)
                weight.copy_(torch.from_numpy(random.normal(0.0, width, tuple(weight.shape))))
    return names


def train_head(
    model: Any, tokenizer: Any, missing: Sequence[str], lines: Sequence[str], settings: HeadTraining, *, name: str
) -> dict[str, Any]:
    """Train in place; returns what was measured: fresh weights, steps, pieces, the loss curve in nats per masked word.

    ``missing``: names of the weights that the source does not hold. Lines are cut to what the model takes at once, if
    not to less. Raises ``CorpusError`` where no line has a word to mask and ``ModelError`` where the loss stops being a
    number. The result depends on the seed alone, on one machine.
    """
    random = np.random.default_rng(settings.seed)
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=name), model.config.vocab_size)
    language_model = MaskedLanguageModel(model, tokenizer, name)
    longest = min(settings.longest_sentence, language_model.frame.longest)
    sentences = masker.encode(enough_lines(lines, settings, longest, random), longest)
    if not sentences:
        raise CorpusError("the training text has no line with a word to mask")
    fresh = initialise_fresh_weights(model, missing, _target_counts(masker, sentences, model.config.vocab_size), random)
    measured = train_on_masked_words(
        model,
        masker,
        sentences,
        settings,
        _groups(model, fresh, settings),
        random,
        equal_lengths=mixes_padding(language_model),
        remedy="lower learning_rate or body_learning_rate",
    )
    return {
        "fresh_weights": fresh,
        "fresh_parameters": sum(w.numel() for n, w in model.named_parameters() if n in fresh),
        **measured,
    }


def _target_counts(masker: WordMasker, sentences: Sequence[Sequence[int]], vocabulary_size: int) -> np.ndarray:
    """``(V,)`` how often each piece is a word that could be masked."""
    counts = np.zeros(vocabulary_size)
    for sentence in sentences:
        pieces = np.array([sentence])
        np.add.at(counts, pieces[masker.maskable(pieces)], 1)
    return counts


def _groups(model: Any, fresh: Sequence[str], settings: HeadTraining) -> list[dict[str, Any]]:
    """Head and body, each with its peak rate. The word embeddings stay as they are: most of their rows would hardly be
    seen, and their gradient is half the cost of a step."""
    model.get_input_embeddings().weight.requires_grad_("embeddings" in fresh)
    head = [weight for name, weight in model.named_parameters() if name in fresh]
    known = set(map(id, head))
    body = [weight for weight in model.parameters() if id(weight) not in known and weight.requires_grad]
    if settings.body_learning_rate == 0:
        for weight in body:
            weight.requires_grad_(False)
        body = []
    return [
        {"params": weights, "lr": rate}
        for weights, rate in ((head, settings.learning_rate), (body, settings.body_learning_rate))
        if weights
    ]
