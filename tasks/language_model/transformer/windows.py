"""How sentences are read: one window each, several where a sentence is longer than the model's positions.

A model with the context ``stream`` reads windows of the running text instead.
"""

from dataclasses import dataclass

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import ArchitectureSettings


@dataclass(frozen=True)
class Windows:
    """Stretches of sentences that are read at once; every target of the text is scored in exactly one of them."""

    first: np.ndarray
    """Index into the text's ids of each window's first input (int64)."""
    length: np.ndarray
    """Inputs of each window (int64); each has a token behind it, a target unless it is the beginning of a sentence."""
    context: np.ndarray
    """How many of its first targets are context only, because an earlier window scored them (int64)."""
    sentence: np.ndarray
    """Index of the sentence, in a stream that of the window's first input (int64)."""

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


def divide_stream(text: EncodedText, maximum_tokens: int, overlap: int = 0) -> Windows:
    """The whole text as one stream, in windows of ``maximum_tokens`` inputs that reach across sentences.

    Neighbouring windows share ``overlap`` positions, as in ``divide``. ``sentence`` is that of a window's first input;
    the beginning of a sentence is an input like any other and no target.
    """
    inputs = len(text.tokens) - 1
    stride = maximum_tokens - overlap
    first = np.arange(0, max(1, inputs - overlap), stride, dtype=np.int64)
    return Windows(
        first=first,
        length=np.minimum(maximum_tokens, inputs - first),
        context=np.where(first > 0, overlap, 0),
        sentence=np.searchsorted(text.offsets, first, side="right") - 1,
    )


def windows_of(text: EncodedText, architecture: ArchitectureSettings, overlap: int = 0) -> Windows:
    """Windows as a model reads them: by sentence, or of the stream where its context is ``stream``."""
    make = divide_stream if architecture.context == "stream" else divide
    return make(text, architecture.maximum_tokens, overlap)


def overlap_of(maximum_tokens: int) -> int:
    """Positions that a later window of a long sentence reads as context when it is scored: half a window."""
    return maximum_tokens // 2
