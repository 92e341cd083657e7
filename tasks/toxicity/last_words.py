"""Share of lines whose last word a language model ranks first, given the words before: a task next to perplexity.

As in LAMBADA (Paperno et al. 2016), on lines of your own: a changed model may retain its perplexity and lose other
abilities. A model of pieces must rank every piece of the word first, as the common harnesses count; the end of the line
competes with all words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.audit.figure import Figure, share_figure
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.sampling import history_of, written_columns

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel, NextWords, Words


def last_word_accuracy(model: "LanguageModel", sentences: "Sequence[Words]") -> Figure:
    """The share of the sentences, with Wilson's interval; ``places`` excludes those of fewer than two words."""
    asked = [words for words in sentences if len(words) > 1]
    if isinstance(model, CausalModel):
        hits = [_of_pieces(model, words) for words in asked]
    else:
        hits = list(_of_words(model.next_words(), asked))
    return share_figure(hits, [1] * len(hits), "the last word of a line, given the words before")


def _of_words(model: "NextWords", asked: "Sequence[Words]") -> list[bool]:
    columns = written_columns(model.vocabulary)
    model.start(columns)
    hits = []
    for words in asked:
        scores = model.scores(history_of(model, words[:-1]))  # (1, C)
        hits.append(bool(columns[int(scores.argmax())] == model.vocabulary.encode(words[-1:])[0]))
    return hits


def _of_pieces(causal: CausalModel, words: "Words") -> bool:
    import torch

    start, begin = causal.pieces.start, causal.pieces.begin
    pieces = [*start[len(begin) :], *(piece for own in causal.pieces.of_words(words) for piece in own)]
    last = causal.pieces.of_words(words[-1:])[0]
    room = causal.longest - len(begin)
    read = torch.tensor([[*begin, *pieces[-room - 1 : -1]]], device=causal.network.device)
    with torch.inference_mode():
        scores = causal.network(input_ids=read, use_cache=False).logits[0, -len(last) :]  # (L, V)
    return scores.argmax(1).tolist() == last
