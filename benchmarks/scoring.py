"""Scoring of the 100-best lists of a recogniser, whose sentences share words.

Ours is ``LanguageModel.score_sentences`` from words to a score for each sentence. The peer is a model of transformers
with the same weights: each list as one batch, padded on the right, with its ids ready before the clock starts. Both
sides multiply in float32 on one thread. The lists are made here in the way of a beam: some uncertain places in a
sentence, several words for each.
"""

from itertools import islice, product
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.frame import speed
from benchmarks.language_model import SIZES, model_of, peer_of
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary

_SAME = 1e-4
"""Of a score: float32, and sums in another order."""


def run(small: bool) -> list[dict[str, Any]]:
    if small:
        return [compared("small", 16, 10)]
    return [compared("20,000 words", 16, 100), compared("85,000 words", 4, 100)]


def compared(name: str, lists: int, size: int) -> dict[str, Any]:
    """The row of a model, with lists of this size."""
    words = tuple(f"w{number}" for number in range(SIZES[name].words - len(SPECIAL_TOKENS)))
    vocabulary, model = Vocabulary((*SPECIAL_TOKENS, *words)), model_of(SIZES[name])
    groups = nbest_lists(words[:-100], lists, size)
    ids = [[[START_ID, *vocabulary.encode(sentence), END_ID] for sentence in group] for group in groups]
    scorer, peer = WordTransformer(model, vocabulary), peer_of(SIZES[name], model).eval()

    def ours() -> list[np.ndarray]:
        return scorer.score_sentences(groups)

    def theirs() -> list[np.ndarray]:
        return [scores_of(peer, sequences) for sequences in ids]

    for own, other in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(own, other, rtol=_SAME)
    title = f"100-best lists by a word Transformer of {name} against a batch for each list"
    return speed(title, lists * size, "sentences/s", ours, theirs)


def nbest_lists(words: tuple[str, ...], lists: int, size: int) -> list[list[tuple[str, ...]]]:
    """Distinct hypotheses of utterances of 8 to 30 words, with three or more words for each of three places."""
    generator, found = np.random.default_rng(1), []
    frequencies = 1 / np.arange(1, len(words) + 1)
    for _ in range(lists):
        count = int(generator.integers(8, 31))
        drawn = generator.choice(len(words), size=count + 12, replace=False, p=frequencies / frequencies.sum())
        sentence, others = [words[place] for place in drawn[:count]], [words[place] for place in drawn[count:]]
        places = generator.choice(count, size=3, replace=False).tolist()
        options = [[sentence[place], *others[4 * n :][:4]] for n, place in enumerate(places)]
        choices = (dict(zip(places, choice, strict=True)) for choice in islice(product(*options), size))
        found.append([tuple(of.get(place, word) for place, word in enumerate(sentence)) for of in choices])
    return found


@torch.inference_mode()
def scores_of(model: Any, sequences: list[list[int]]) -> np.ndarray:
    """Log-probabilities of token sequences after their first token (N,)."""
    width = max(map(len, sequences))
    tokens = torch.zeros((len(sequences), width), dtype=torch.int64)
    targets = torch.full((len(sequences), width - 1), -100)
    for number, sequence in enumerate(sequences):
        tokens[number, : len(sequence)] = torch.tensor(sequence)
        targets[number, : len(sequence) - 1] = torch.tensor(sequence[1:])
    logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="none")
    return -losses.view_as(targets).double().sum(1).numpy()
