"""How sentences are read: one window each, several where a sentence is longer than the model's positions."""

from dataclasses import dataclass

import numpy as np

from tasks.language_model.encoded_text import EncodedText


@dataclass(frozen=True)
class Windows:
    """Stretches of sentences that are read at once; every target of the text is scored in exactly one of them."""

    first: np.ndarray
    """Index into the text's ids of each window's first input (int64)."""
    length: np.ndarray
    """Inputs, and equally targets, of each window (int64)."""
    context: np.ndarray
    """How many of its first targets are context only, because an earlier window scored them (int64)."""
    sentence: np.ndarray
    """Index of the sentence (int64)."""

    def __len__(self) -> int:
        return len(self.first)


def divide(text: EncodedText, maximum_tokens: int, overlap: int = 0) -> Windows:
    """One window a sentence; a sentence with more than ``maximum_tokens`` targets gets several.

    Neighbouring windows of a sentence share ``overlap`` positions: the later window reads them as context and scores
    what comes after. Nothing is cut off, and no window reaches across two sentences.
    """
    targets = np.diff(text.offsets) - 1
    stride = maximum_tokens - overlap
    counts = 1 + np.maximum(0, -(-(targets - maximum_tokens) // stride))
    sentence = np.repeat(np.arange(len(targets)), counts)
    rank = np.arange(len(sentence)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = rank * stride
    return Windows(
        first=text.offsets[sentence] + start,
        length=np.minimum(maximum_tokens, targets[sentence] - start),
        context=np.where(rank > 0, overlap, 0),
        sentence=sentence,
    )


def overlap_of(maximum_tokens: int) -> int:
    """Positions that a later window of a long sentence reads as context when it is scored: half a window."""
    return maximum_tokens // 2
