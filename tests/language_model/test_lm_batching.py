"""Windows and batches: every target once, none lost, none across sentences."""

from collections import Counter

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer.batching import Windows, divide

LINES = ["a", "a b", "a b c d a b c d a b c", "b b b", "c " * 20, "d d d d", "a c"]


def scored_positions(text: EncodedText, windows: Windows) -> Counter[int]:
    """How often each id of the text is a target."""
    counts: Counter[int] = Counter()
    for first, length, context in zip(windows.first, windows.length, windows.context, strict=True):
        counts.update(range(first + 1 + context, first + 1 + length))
    return counts


def test_every_target_is_scored_exactly_once_and_no_window_reaches_across_sentences(encoded):
    text = encoded(LINES)
    for maximum, overlap in ((4, 0), (4, 2), (5, 2), (8, 4), (12, 0), (12, 6), (21, 0), (100, 50)):
        windows = divide(text, maximum, overlap)
        assert scored_positions(text, windows) == Counter(np.flatnonzero(text.is_target()).tolist())
        assert windows.length.max() <= maximum
        assert (windows.length > windows.context).all()
        assert (windows.first >= text.offsets[windows.sentence]).all()
        assert (windows.first + windows.length <= text.offsets[windows.sentence + 1] - 1).all()
