"""Sampling of sentences from a language model, with or without a prompt.

Each word or subword token is drawn by probability from the ``likeliest`` (top-k) or their ``nucleus``, the likeliest
that together have this probability (Holtzman et al. 2020). No special token but the sentence end is drawn.
"""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.sequence_tree import ROOT
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.language_model.causal_lm.model import CausalModel
    from tasks.language_model.language_models import Drawing, NextWords, Words

_WORDS_AT_ONCE = 256
_PIECES_AT_ONCE = 64
"""Sentences in one batch; the number is fixed, so that the same seed samples the same text."""
_FIRST = 1024
"""Candidates that a nucleus is first searched in: a full sort takes longer than a small model takes to score them."""


def sample_words(model: "NextWords", drawing: "Drawing") -> "list[Words]":
    """Sample sentences from a word model after each prompt; a sentence is cut off after ``longest`` words."""
    import torch

    columns = written_columns(model.vocabulary)
    random = np.random.default_rng(drawing.seed)
    found: list[Words] = []
    beginnings = [prompt for prompt in drawing.prompts for _ in range(drawing.sentences)]
    for begin in range(0, len(beginnings), _WORDS_AT_ONCE):
        model.start(columns)
        some = beginnings[begin : begin + _WORDS_AT_ONCE]
        written: list[list[str]] = [[] for _ in some]
        going = np.arange(len(some))
        histories = np.concatenate([history_of(model, prompt) for prompt in some])
        for _ in range(drawing.longest):
            distinct, row = np.unique(histories, return_inverse=True)
            chances, places = _chances(model.scores(distinct), drawing)  # (D, K)
            below = chances.cumsum(dim=1, dtype=torch.float64)[row]  # (N, K)
            aim = torch.from_numpy(random.random((len(going), 1))) * below[:, -1:]
            number = torch.searchsorted(below, aim, right=True).clamp(max=below.shape[1] - 1)
            drawn = columns[places[row].gather(1, number)[:, 0].numpy()]
            going, histories, drawn = (each[drawn != END_ID] for each in (going, histories, drawn))
            if not len(going):
                break
            for sentence, word in zip(going.tolist(), drawn.tolist(), strict=True):
                written[sentence].append(model.vocabulary.tokens[word])
            histories = model.extend(histories, drawn)
        found += map(tuple, written)
    return found


def written_columns(vocabulary: Vocabulary) -> np.ndarray:
    """The ids (C,) that a word model may write: the sentence end, and all but special tokens."""
    return np.array([END_ID, *range(len(SPECIAL_TOKENS), len(vocabulary))])


def history_of(model: "NextWords", words: "Words") -> np.ndarray:
    """The history (1,) of a sentence that begins with these words."""
    history = np.array([ROOT])
    for word in model.vocabulary.encode(words):
        history = model.extend(history, np.array([word]))
    return history


def sample_pieces(causal: "CausalModel", drawing: "Drawing") -> "list[Words]":
    """Sample words from a model of subword tokens; a sentence ends with its line, or after ``longest`` tokens.

    A prompt that is too long for the model's window is truncated on the left.
    """
    import torch
    from tqdm import tqdm

    model, pieces = causal.network.eval(), causal.pieces
    random, ends = torch.Generator().manual_seed(drawing.seed), torch.tensor(pieces.line_ends)
    longest = min(drawing.longest, causal.longest - len(pieces.start))
    room = causal.longest - len(pieces.start) - longest
    found: list[Words] = []
    blocks = list(product(drawing.prompts, range(0, drawing.sentences, _PIECES_AT_ONCE)))
    for prompt, begin in tqdm(blocks, desc="writing", unit="batch", disable=None, leave=False):
        inside = [piece for own in pieces.of_words(prompt) for piece in own]
        start = [*pieces.start, *inside[max(0, len(inside) - room) :]]
        written: list[list[int]] = [[] for _ in range(min(_PIECES_AT_ONCE, drawing.sentences - begin))]
        going, read = torch.arange(len(written)), torch.tensor([start] * len(written))
        cache = None
        for _ in range(longest):
            with torch.inference_mode():
                # A model without a cache of keys and values reads the whole text again.
                new = read if cache is None else read[:, -1:]
                once = len(prompt) > 0 and read.shape[1] == len(start)
                output = model(
                    input_ids=new[: 1 if once else None].to(model.device), past_key_values=cache, use_cache=True
                )
            cache = getattr(output, "past_key_values", None)
            if once and cache is not None:
                # The common prompt is read once.
                cache.batch_repeat_interleave(len(read))
            scores = output.logits[:, -1].float().cpu().expand(len(read), -1)
            chances, places = _chances(scores, drawing)
            drawn = places.gather(1, torch.multinomial(chances, 1, generator=random))  # (N, 1)
            on = ~torch.isin(drawn[:, 0], ends)
            going, read, drawn = going[on], torch.cat([read, drawn], dim=1)[on], drawn[on]
            if not len(going):
                break
            for sentence, piece in zip(going.tolist(), drawn[:, 0].tolist(), strict=True):
                written[sentence].append(piece)
            if cache is not None:
                cache.batch_select_indices(on.nonzero()[:, 0].to(model.device))
        found += map(pieces.words, written)
    return found


def _chances(scores: "Tensor", drawing: "Drawing") -> "tuple[Tensor, Tensor]":
    """Probabilities (N, K) and their columns (N, K), from scores (N, V). They are sorted, unless all count, and
    0 outside the nucleus."""
    import torch

    most = min(drawing.likeliest, scores.shape[1])
    if most == scores.shape[1] and drawing.nucleus == 1:
        return scores.softmax(1), torch.arange(most).expand(len(scores), -1)
    if drawing.nucleus == 1:
        values, places = scores.topk(most, dim=1)
        return values.softmax(1), places
    whole = scores.logsumexp(1, keepdim=True)
    values, places = scores.topk(min(most, _FIRST), dim=1)
    if bool(((values - whole).exp().sum(1) < drawing.nucleus).any()):
        values, places = scores.topk(most, dim=1)
    chances = (values - whole).exp()
    return chances.masked_fill(chances.cumsum(1) - chances >= drawing.nucleus, 0), places
