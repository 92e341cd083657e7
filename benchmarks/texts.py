"""Texts of the benchmarks: typed messages as they are, with masked words, and made-up text by Zipf's law."""

from functools import cache
from itertools import islice

import numpy as np

from tasks.corpora.division import normalise
from tasks.corpora.sources.package_text import ChitchatCorpus
from tasks.corpora.words import word_spans
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID


@cache
def messages() -> list[str]:
    """258,000 typed messages, 2.5 million words."""
    documents = ChitchatCorpus(kind="chitchat", source="constraints.txt").open().documents()
    return [line for document in documents for line in map(normalise, document.texts) if line]


def masked_messages(count: int) -> list[str]:
    """Messages with every sixth word masked: 1 to 5 markers each."""
    lines: list[str] = []
    for line in messages():
        spans = word_spans(line)
        if 6 <= len(spans) <= 30 and line.isascii() and "[" not in line:
            for start, end in reversed(spans[len(lines) % 6 :: 6]):
                line = f"{line[:start]}[MASK]{line[end:]}"
            lines.append(line)
    return list(islice(lines[:: len(lines) // count], count))


def zipf_text(words: int, targets: int) -> EncodedText:
    """About this many targets in sentences of 3 to 40 words of a vocabulary, encoded."""
    generator = np.random.default_rng(1)
    first = len(SPECIAL_TOKENS)
    frequencies = 1 / np.arange(1, words - first + 1)
    lengths = generator.integers(3, 41, size=targets // 20 + 8)
    drawn = first + generator.choice(words - first, size=int(lengths.sum()), p=frequencies / frequencies.sum())
    sentences = np.split(drawn, np.cumsum(lengths)[:-1])
    return EncodedText(
        tokens=np.concatenate([np.r_[START_ID, sentence, END_ID] for sentence in sentences]).astype(np.int32),
        offsets=np.r_[0, np.cumsum(lengths + 2)],
        lines=np.arange(1, len(lengths) + 1),
        empty_lines=0,
        marker_like=0,
        markers_are_targets=True,
    )
