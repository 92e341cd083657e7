"""Scoring of sentences that share words: 100-best lists of a recogniser, and references of canaries.

Ours is ``LanguageModel.score_sentences`` from words to a score for each sentence. The peer is a model of transformers
with the same weights: each list as one batch, padded on the right, with its ids ready before the clock starts. The
references of canaries are all of one length, and come in batches of 256. Both sides multiply in float32 on one thread.
The lists are made here in the way of a beam: some uncertain places in a sentence, several words for each.
"""

from collections.abc import Callable, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.frame import speed
from benchmarks.language_model import SIZES, model_of, peer_of
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary

REFERENCES, FORM, DRAWN, BATCH = 2048, 5, 3, 256
"""References of canaries, their fixed words, their drawn ones, and sentences of a batch."""
_SAME = 1e-4
"""Of a score: float32, and sums in another order."""

Words = tuple[str, ...]
Groups = list[list[Words]]
Sides = tuple[Callable[[], list[np.ndarray]], Callable[[], list[np.ndarray]]]


def run(small: bool) -> list[dict[str, Any]]:
    names, hypotheses = (("small",), 10) if small else (("20,000 words", "85,000 words"), 100)
    rows = []
    for name, lists in zip(names, (16, 4), strict=False):
        words = [f"w{number}" for number in range(SIZES[name].words)]
        sides = _word_sides(name, words, nbest_lists(words[:-100], lists, hypotheses))
        rows.append(_row(f"100-best lists by a word Transformer of {name} against a batch for each list", sides))
    rows.append(_row(f"references of canaries against batches of {BATCH}", _word_sides(names[0], words, references())))
    return rows


def nbest_lists(words: Sequence[str], lists: int, size: int) -> Groups:
    """Distinct hypotheses of utterances of 8 to 30 words, with three or more words for each of three places."""
    generator, found = np.random.default_rng(1), list[list[Words]]()
    frequencies = 1 / np.arange(1, len(words) + 1)
    for _ in range(lists):
        count = int(generator.integers(8, 31))
        drawn = generator.choice(len(words), size=count + 12, replace=False, p=frequencies / frequencies.sum())
        sentence, others = [words[place] for place in drawn[:count]], [words[place] for place in drawn[count:]]
        places = generator.choice(count, size=3, replace=False).tolist()
        found.append([])
        options = [[sentence[place], *others[4 * n :][:4]] for n, place in enumerate(places)]
        for choice in islice(product(*options), size):
            changed = dict(zip(places, choice, strict=True))
            found[-1].append(tuple(changed.get(place, word) for place, word in enumerate(sentence)))
    return found


def references() -> Groups:
    """Sentences of one form, each with drawn words after the same beginning."""
    drawn = np.random.default_rng(1).choice(2000, size=(REFERENCES, DRAWN))
    beginning = tuple(f"w{number}" for number in range(FORM))
    return [[beginning + tuple(f"w{place}" for place in places) for places in drawn.tolist()]]


def _row(name: str, sides: Sides) -> dict[str, Any]:
    ours, peer = sides
    scores = ours()
    for own, theirs in zip(scores, peer(), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=_SAME)
    return speed(name, sum(map(len, scores)), "sentences/s", ours, peer)


def _peer(model: Any, groups: list[list[list[int]]]) -> Callable[[], list[np.ndarray]]:
    """Scores of token sequences after their first token."""

    @torch.inference_mode()
    def scores_of(sequences: list[list[int]]) -> np.ndarray:
        width = max(map(len, sequences))
        tokens = torch.zeros((len(sequences), width), dtype=torch.int64)
        targets = torch.full((len(sequences), width - 1), -100)
        for number, sequence in enumerate(sequences):
            tokens[number, : len(sequence)] = torch.tensor(sequence)
            targets[number, : len(sequence) - 1] = torch.tensor(sequence[1:])
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="none")
        return -losses.view_as(targets).double().sum(1).numpy()

    def score() -> list[np.ndarray]:
        parts = ([group[begin : begin + BATCH] for begin in range(0, len(group), BATCH)] for group in groups)
        return [np.concatenate([scores_of(part) for part in batches]) for batches in parts]

    return score


def _word_sides(name: str, words: Sequence[str], groups: Groups) -> Sides:
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words[: SIZES[name].words - len(SPECIAL_TOKENS)]))
    model = model_of(SIZES[name])
    scorer = WordTransformer(model, vocabulary)
    ids = [[[START_ID, *vocabulary.encode(sentence), END_ID] for sentence in group] for group in groups]
    return lambda: scorer.score_sentences(groups), _peer(peer_of(SIZES[name], model).eval(), ids)
