"""Sentences that a language model writes by itself, given nothing: every word, or piece of one, is drawn by the model's
probabilities among so many ``likeliest`` ones. Special tokens other than the sentence's end are never written.
"""

from typing import TYPE_CHECKING

import numpy as np

from tasks.language_model.sequence_tree import ROOT
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS

if TYPE_CHECKING:
    from tasks.language_model.causal_lm.model import CausalModel
    from tasks.language_model.language_models import NextWords, Words

_WORDS_AT_ONCE = 256
_PIECES_AT_ONCE = 64
"""Sentences that are written side by side; of each kind so many, so that the same seed writes the same."""


def sample_words(model: "NextWords", sentences: int, likeliest: int, longest: int, seed: int) -> "list[Words]":
    """Of a model of words; a sentence is cut off behind ``longest`` of them."""
    import torch

    columns = np.array([END_ID, *range(len(SPECIAL_TOKENS), len(model.vocabulary))])
    random = np.random.default_rng(seed)
    found: list[Words] = []
    for begin in range(0, sentences, _WORDS_AT_ONCE):
        model.start(columns)
        written: list[list[str]] = [[] for _ in range(min(_WORDS_AT_ONCE, sentences - begin))]
        going, histories = np.arange(len(written)), np.full(len(written), ROOT)
        for _ in range(longest):
            distinct, row = np.unique(histories, return_inverse=True)
            scores, places = model.scores(distinct).topk(min(likeliest, len(columns)), dim=1)  # (D, K)
            below = torch.softmax(scores, dim=1).cumsum(dim=1, dtype=torch.float64)[row]  # (N, K)
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


def sample_pieces(causal: "CausalModel", sentences: int, likeliest: int, longest: int, seed: int) -> "list[Words]":
    """Of a model of pieces, the words that they spell; a sentence ends with its line, or behind ``longest`` pieces."""
    import torch

    model, pieces = causal.model.eval(), causal.pieces
    random, ends = torch.Generator().manual_seed(seed), torch.tensor(pieces.line_ends)
    longest = min(longest, causal.maximum_pieces - len(pieces.start))
    found: list[Words] = []
    for begin in range(0, sentences, _PIECES_AT_ONCE):
        written: list[list[int]] = [[] for _ in range(min(_PIECES_AT_ONCE, sentences - begin))]
        going, read = torch.arange(len(written)), torch.tensor([pieces.start] * len(written))
        kept = None
        for _ in range(longest):
            with torch.inference_mode():
                # A model that keeps no keys and values reads it all anew.
                new = read if kept is None else read[:, -1:]
                output = model(input_ids=new.to(model.device), past_key_values=kept, use_cache=True)
            scores, places = output.logits[:, -1].float().cpu().topk(min(likeliest, output.logits.shape[-1]), dim=1)
            drawn = places.gather(1, torch.multinomial(scores.softmax(1), 1, generator=random))  # (N, 1)
            on = ~torch.isin(drawn[:, 0], ends)
            going, read, drawn = going[on], torch.cat([read, drawn], dim=1)[on], drawn[on]
            if not len(going):
                break
            for sentence, piece in zip(going.tolist(), drawn[:, 0].tolist(), strict=True):
                written[sentence].append(piece)
            kept = getattr(output, "past_key_values", None)
            if kept is not None:
                kept.batch_select_indices(on.nonzero()[:, 0].to(model.device))
        found += map(pieces.words, written)
    return found
