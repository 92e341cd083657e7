"""Neighbours of lines: copies with one word exchanged for a likely one of a masked language model (Mattern et al.
2023, "Membership Inference Attacks against Language Models via Neighbourhood Comparison")."""

import random
from collections.abc import Sequence

import numpy as np

from tasks.corpora.words import fold, word_spans
from tasks.filling.masked_lm.candidate_words import candidate_words
from tasks.filling.masked_lm.places import OpenPlace, candidate_log_probabilities
from tasks.filling.opened_filler import OpenedFiller

NEIGHBOURS = 10
_PLACES_AT_ONCE = 512


def neighbours_of(lines: Sequence[str], filler: str, seed: int, threads: int) -> list[list[str]]:
    """``NEIGHBOURS`` of each line, each with the likeliest word at one of its words, drawn by ``seed``. A line of fewer
    words takes the next likeliest too; a line without a word has none."""
    chance = random.Random(seed)
    wanted: list[tuple[int, int, int, int]] = []  # line, start and end of the word, rank of its substitute
    for number, line in enumerate(lines):
        spans = word_spans(line)
        chance.shuffle(spans)
        wanted += [(number, *spans[n % len(spans)], n // len(spans)) for n in range(NEIGHBOURS) if spans]
    model = OpenedFiller(filler, threads).masked
    candidates = candidate_words(model.tokenizer, name=model.name)
    written: dict[str, list[int]] = {}
    for entry, word in enumerate(candidates.words):
        written.setdefault(fold(word), []).append(entry)
    found: list[list[str]] = [[] for _ in lines]
    for begin in range(0, len(wanted), _PLACES_AT_ONCE):
        some = wanted[begin : begin + _PLACES_AT_ONCE]
        places = [OpenPlace((lines[number][:start], lines[number][end:]), 0) for number, start, end, _ in some]
        table = candidate_log_probabilities(model, candidates, np.ones(len(candidates), dtype=bool), places)  # (N, W)
        for (number, start, end, rank), scores in zip(some, table, strict=True):
            line = lines[number]
            scores[written.get(fold(line[start:end]), [])] = -np.inf
            best = np.argpartition(-scores, rank)[: rank + 1]
            word = candidates.words[best[np.argmin(scores[best])]]
            found[number].append(f"{line[:start]}{word}{line[end:]}")
    return found
