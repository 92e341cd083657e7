"""Training a masked-LM head on a pretrained body that comes without one.

Packages bring sentence encoders: real pretrained bodies, but no head. The fresh weights start where a head may well end
up: the transform as the identity, the decoder tied to the body's own word embeddings, its bias at the words' log
frequency. Then head and body learn together, each at its own rate, from generic text.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import CorpusError, ModelError
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.masked_batches import WordMasker, length_batches
from tasks.filling.settings import HeadTraining
from tasks.filling.tuning_steps import loss_curve, rate_factor
from tasks.torch_setup import has_bfloat16

_WEIGHT_DECAY = 0.01
_BETAS = (0.9, 0.98)
_LARGEST_GRADIENT = 1.0


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

    ``missing``: names of the weights that the source does not hold. Raises ``CorpusError`` where no line has a word to
    mask and ``ModelError`` where the loss stops being a number. The result depends on the seed alone, on one machine.
    """
    import torch
    from tqdm import tqdm

    from tasks.filling.masked_lm.marker_scores import earliest_cut, scores_at

    random = np.random.default_rng(settings.seed)
    masker = WordMasker(tokenizer, candidate_words(tokenizer, name=name), model.config.vocab_size)
    sentences = masker.encode(_enough(lines, settings, random), settings.longest_sentence)
    if not sentences:
        raise CorpusError("the training text has no line with a word to mask")
    fresh = initialise_fresh_weights(model, missing, _target_counts(masker, sentences, model.config.vocab_size), random)
    optimiser, rates = _optimiser(model, fresh, settings)
    # Short sentences: the plain attention takes half the time of the fused one in training. Dropout stays off: the
    # text is seen once.
    model.set_attn_implementation("eager")
    model.eval()
    cut = earliest_cut(model)
    batches = length_batches(sentences, settings.batch_pieces, random)
    losses: list[float] = []
    pieces = words = 0
    for step in tqdm(range(settings.steps), desc="training head", unit=" steps", disable=None):
        factor = rate_factor(step, settings.steps, settings.warm_up_share)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        batch = masker.batch(next(batches), settings.masked_share, random)
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16()):
            scores = scores_at(model, batch.pieces, batch.attention, batch.rows, batch.positions, cut=cut)  # (N, V)
            loss = torch.nn.functional.cross_entropy(scores.float(), batch.targets)
        if not math.isfinite(loss.item()):
            raise ModelError(f"the loss is no number at step {step + 1}; lower learning_rate or body_learning_rate")
        loss.backward()
        torch.nn.utils.clip_grad_norm_([w for w in model.parameters() if w.requires_grad], _LARGEST_GRADIENT)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        pieces += int(batch.attention.sum())
        words += len(batch.targets)
    model.requires_grad_(True)
    model.set_attn_implementation("sdpa")
    return {
        "fresh_weights": fresh,
        "fresh_parameters": sum(w.numel() for n, w in model.named_parameters() if n in fresh),
        "steps": settings.steps,
        "pieces": pieces,
        "masked_words": words,
        "loss_curve": loss_curve(losses),
    }


def _enough(lines: Sequence[str], settings: HeadTraining, random: np.random.Generator) -> list[str]:
    """A random part of the text that lasts for all steps; a line has at least as many pieces as words."""
    wanted = settings.steps * settings.batch_pieces
    chosen: list[str] = []
    for index in random.permutation(len(lines)).tolist():
        if wanted <= 0:
            break
        chosen.append(lines[index])
        wanted -= min(len(lines[index].split()), settings.longest_sentence)
    return chosen


def _target_counts(masker: WordMasker, sentences: Sequence[Sequence[int]], vocabulary_size: int) -> np.ndarray:
    """``(V,)`` how often each piece is a word that could be masked."""
    counts = np.zeros(vocabulary_size)
    for sentence in sentences:
        pieces = np.array([sentence])
        np.add.at(counts, pieces[masker.maskable(pieces)], 1)
    return counts


def _optimiser(model: Any, fresh: Sequence[str], settings: HeadTraining) -> tuple[Any, list[float]]:
    """AdamW over head and body, and the peak rate of each group. The word embeddings stay as they are: most of their
    rows would hardly be seen, and their gradient is half the cost of a step."""
    import torch

    model.get_input_embeddings().weight.requires_grad_("embeddings" in fresh)
    head = [weight for name, weight in model.named_parameters() if name in fresh]
    known = set(map(id, head))
    body = [weight for weight in model.parameters() if id(weight) not in known and weight.requires_grad]
    if settings.body_learning_rate == 0:
        for weight in body:
            weight.requires_grad_(False)
        body = []
    groups = [
        {"params": weights, "lr": rate}
        for weights, rate in ((head, settings.learning_rate), (body, settings.body_learning_rate))
        if weights
    ]
    return (
        torch.optim.AdamW(groups, betas=_BETAS, weight_decay=_WEIGHT_DECAY, fused=True),
        [float(group["lr"]) for group in groups],  # type: ignore[arg-type]
    )
