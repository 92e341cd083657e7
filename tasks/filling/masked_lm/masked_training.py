"""The steps in which a masked LM learns to guess masked words: of a fresh head as of a filler that is fine-tuned."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import ModelError
from tasks.filling.filler_settings import MaskedTraining
from tasks.filling.masked_lm.masked_batches import WordMasker, length_batches
from tasks.filling.training.tuning_steps import loss_curve, rate_factor
from tasks.torch_setup import has_bfloat16

_WEIGHT_DECAY = 0.01
_BETAS = (0.9, 0.98)
_LARGEST_GRADIENT = 1.0


def train_on_masked_words(
    model: Any,
    masker: WordMasker,
    sentences: Sequence[Sequence[int]],
    settings: MaskedTraining,
    groups: Sequence[dict[str, Any]],
    random: np.random.Generator,
    *,
    equal_lengths: bool,
    remedy: str,
    name: str = "training head",
) -> dict[str, Any]:
    """Train in place; returns steps, sentences and pieces seen, and the loss curve in nats per masked word.

    ``sentences``: pieces, from ``WordMasker.encode``; ``groups``: weights (``params``) with their peak rates (``lr``);
    ``equal_lengths``: no batch has padding, for models that mix it into the sentence (``padding_probe``); ``name``
    stands at the progress bar. Raises ``ModelError`` with the ``remedy`` where the loss stops being a number.
    """
    import torch
    from tqdm import tqdm

    from tasks.filling.masked_lm.marker_scores import earliest_cut, scores_at

    rates = [float(group["lr"]) for group in groups]
    optimiser = torch.optim.AdamW(list(groups), betas=_BETAS, weight_decay=_WEIGHT_DECAY, fused=True)
    # Short sentences: the plain attention takes half the time of the fused one in training. Dropout stays off: the
    # text is seen once or a few times.
    attention = model.config._attn_implementation
    model.set_attn_implementation("eager")
    model.eval()
    cut = earliest_cut(model)
    batches = length_batches(sentences, settings.batch_pieces, random, equal_lengths=equal_lengths)
    losses: list[float] = []
    seen = pieces = words = 0
    for step in tqdm(range(settings.steps), desc=name, unit=" steps", disable=None):
        factor = rate_factor(step, settings.steps, settings.warm_up_share)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        batch = masker.batch(next(batches), settings.masked_share, random)
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16()):
            scores = scores_at(model, batch.pieces, batch.attention, batch.rows, batch.positions, cut=cut)  # (N, V)
            loss = torch.nn.functional.cross_entropy(scores.float(), batch.targets)
        if not math.isfinite(loss.item()):
            raise ModelError(f"the loss is no number at step {step + 1}; {remedy}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_([w for w in model.parameters() if w.requires_grad], _LARGEST_GRADIENT)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        seen += len(batch.pieces)
        pieces += int(batch.attention.sum())
        words += len(batch.targets)
    model.requires_grad_(True)
    model.set_attn_implementation(attention)
    return {
        "steps": settings.steps,
        "sentences_seen": seen,
        "pieces": pieces,
        "masked_words": words,
        "loss_curve": loss_curve(losses),
    }


def enough_lines(
    lines: Sequence[str], settings: MaskedTraining, longest_sentence: int, random: np.random.Generator
) -> list[str]:
    """A random part of the text that lasts for all steps; a line has at least as many pieces as words.

    ``longest_sentence``: pieces that a line is cut to, which the model may set lower than the settings.
    """
    wanted = settings.steps * settings.batch_pieces
    chosen: list[str] = []
    for index in random.permutation(len(lines)).tolist():
        if wanted <= 0:
            break
        chosen.append(lines[index])
        wanted -= min(len(lines[index].split()), longest_sentence)
    return chosen
