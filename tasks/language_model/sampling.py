"""Sentences that a language model writes by itself, given nothing or a beginning (prompt): every word, or piece of one,
is drawn by the model's probabilities among so many ``likeliest`` ones, or of these the ``nucleus``: the likeliest that
together have this probability (Holtzman et al. 2020). Special tokens other than the sentence's end are never written.
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
"""Sentences that are written side by side; of each kind so many, so that the same seed writes the same."""
_FIRST = 1024
"""So many of the likeliest are looked at first for a nucleus: to sort tens of thousands of pieces takes longer than a
small model takes to score them."""


def sample_words(model: "NextWords", drawing: "Drawing") -> "list[Words]":
    """Of a model of words, so many sentences behind each prompt; one is cut off behind ``longest`` words."""
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
    """Ids (C,) of what a model of words may write: the sentence's end, and all but special tokens."""
    return np.array([END_ID, *range(len(SPECIAL_TOKENS), len(vocabulary))])


def history_of(model: "NextWords", words: "Words") -> np.ndarray:
    """The history (1,) of a sentence that begins so."""
    history = np.array([ROOT])
    for word in model.vocabulary.encode(words):
        history = model.extend(history, np.array([word]))
    return history


def sample_pieces(causal: "CausalModel", drawing: "Drawing") -> "list[Words]":
    """Of a model of pieces, the words that they spell; a sentence ends with its line, or behind ``longest`` pieces.

    Of a prompt that is too long for the model's window the end is read.
    """
    import torch
    from tqdm import tqdm

    model, pieces = causal.model.eval(), causal.pieces
    random, ends = torch.Generator().manual_seed(drawing.seed), torch.tensor(pieces.line_ends)
    longest = min(drawing.longest, causal.maximum_pieces - len(pieces.start))
    room = causal.maximum_pieces - len(pieces.start) - longest
    found: list[Words] = []
    blocks = list(product(drawing.prompts, range(0, drawing.sentences, _PIECES_AT_ONCE)))
    for prompt, begin in tqdm(blocks, desc="writing", unit="batch", disable=None, leave=False):
        inside = [piece for own in pieces.of_words(prompt) for piece in own]
        start = [*pieces.start, *inside[max(0, len(inside) - room) :]]
        written: list[list[int]] = [[] for _ in range(min(_PIECES_AT_ONCE, drawing.sentences - begin))]
        going, read = torch.arange(len(written)), torch.tensor([start] * len(written))
        kept = None
        for _ in range(longest):
            with torch.inference_mode():
                # A model that keeps no keys and values reads it all anew.
                new = read if kept is None else read[:, -1:]
                once = len(prompt) > 0 and read.shape[1] == len(start)
                output = model(
                    input_ids=new[: 1 if once else None].to(model.device), past_key_values=kept, use_cache=True
                )
            kept = getattr(output, "past_key_values", None)
            if once and kept is not None:
                # What all have in common is read once.
                kept.batch_repeat_interleave(len(read))
            scores = output.logits[:, -1].float().cpu().expand(len(read), -1)
            chances, places = _chances(scores, drawing)
            drawn = places.gather(1, torch.multinomial(chances, 1, generator=random))  # (N, 1)
            on = ~torch.isin(drawn[:, 0], ends)
            going, read, drawn = going[on], torch.cat([read, drawn], dim=1)[on], drawn[on]
            if not len(going):
                break
            for sentence, piece in zip(going.tolist(), drawn[:, 0].tolist(), strict=True):
                written[sentence].append(piece)
            if kept is not None:
                kept.batch_select_indices(on.nonzero()[:, 0].to(model.device))
        found += map(pieces.words, written)
    return found


def _chances(scores: "Tensor", drawing: "Drawing") -> "tuple[Tensor, Tensor]":
    """Chances (N, K) and their columns (N, K), of scores (N, V): the highest first where not all count, and 0 outside
    the nucleus."""
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
