"""Generic text mixed into an adaptation, so that the model does not forget what it knew.

The share is of the targets of each epoch: with a share of 0.1, nine of ten targets come from the text that the model
is adapted to, all of which is still seen once an epoch, and one from generic text.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError, ParameterError
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.normalisation import normalise
from tasks.language_model.vocabulary import END_ID, START_ID, Vocabulary

_SEED_BRANCH = 0x67656E
"""Keeps these draws apart from those that order the batches of the same seed."""
_NUMBERS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class MixedText:
    """A text with generic sentences behind its own."""

    text: EncodedText
    """What an epoch is made of."""
    generic_sentences: int
    """How many of its sentences are generic."""
    generic_targets: int
    """How many of its targets are generic."""


def check_generic_share(share: float, path: str | None) -> None:
    """``ParameterError`` where generic text is to be mixed in and there is none."""
    if share > 0 and not path:
        raise ParameterError(
            f"generic_share is {share!r} and there is no generic text; name it with --generic-text, or set the share "
            "to 0"
        )


def mix_generic_text(
    text: EncodedText, path: str | Path | None, vocabulary: Vocabulary, share: float, seed: int
) -> MixedText:
    """Add generic sentences to a text until they have ``share`` of all targets; the seed says which.

    Every epoch has the same ones. Raises ``CorpusError`` where the generic text is too short.
    """
    wanted = round(int(text.is_target().sum()) * share / (1 - share))
    if not wanted or path is None:
        return MixedText(text, 0, 0)
    chosen = sample_sentences(path, wanted, vocabulary, seed)
    tokens = [np.array([START_ID, *ids, END_ID], dtype=np.int32) for _, ids in chosen]
    ends = len(text.tokens) + np.cumsum([len(sentence) for sentence in tokens])
    return MixedText(
        replace(
            text,
            tokens=np.concatenate([text.tokens, *tokens]),
            offsets=np.concatenate([text.offsets, ends]),
            lines=np.concatenate([text.lines, [number for number, _ in chosen]]),
        ),
        generic_sentences=len(tokens),
        generic_targets=sum(len(sentence) - 1 for sentence in tokens),
    )


def sample_sentences(path: str | Path, wanted: int, vocabulary: Vocabulary, seed: int) -> list[tuple[int, list[int]]]:
    """Sentences of a text, drawn without replacement until they have ``wanted`` targets: ids in order, with the numbers
    of their lines.

    The text is streamed: each line draws a number, and the lines with the smallest numbers are kept, but for those
    without a word. Raises ``CorpusError`` where the text has fewer targets than that.
    """
    heap: list[tuple[float, int, list[int]]] = []  # the largest number first
    total = 0
    for number, (line, drawn) in enumerate(zip(read_lines(path), _numbers(seed), strict=False), start=1):
        if total >= wanted and -drawn < heap[0][0]:
            continue
        ids = vocabulary.encode(normalise(line))
        if not ids:
            continue
        heapq.heappush(heap, (-drawn, number, ids))
        total += len(ids) + 1
        while total - len(heap[0][2]) - 1 >= wanted:
            total -= len(heapq.heappop(heap)[2]) + 1
    if total < wanted:
        raise CorpusError(
            f"generic text {str(path)!r} has {total} targets, and generic_share asks for {wanted}; give more generic "
            "text or a smaller share"
        )
    return sorted((number, ids) for _, number, ids in heap)


def _numbers(seed: int) -> Iterator[float]:
    generator = np.random.default_rng([_SEED_BRANCH, seed])
    while True:
        yield from generator.random(_NUMBERS_AT_ONCE).tolist()
