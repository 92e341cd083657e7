"""Windows and batches: every target once, none lost, none across sentences."""

from collections import Counter

import numpy as np

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer.batching import Windows, divide, epoch_order, make_batch, shuffled_batches
from tasks.language_model.vocabulary import END_ID, START_ID

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


def test_windows_of_a_long_sentence_by_hand(encoded):
    text = encoded(["a b c d a b c d a"])  # ten targets: nine words and the end
    plain = divide(text, 4)
    assert plain.first.tolist() == [0, 4, 8]
    assert plain.length.tolist() == [4, 4, 2]
    overlapping = divide(text, 4, 2)
    assert overlapping.first.tolist() == [0, 2, 4, 6]
    assert overlapping.length.tolist() == [4, 4, 4, 4]
    assert overlapping.context.tolist() == [0, 2, 2, 2]


def test_a_batch_by_hand(encoded, vocabulary):
    text = encoded(["a", "b c"])
    batch = make_batch(text, text.is_target(), divide(text, 8), np.array([1, 0]))
    a, b, c = (vocabulary.ids[word] for word in "abc")
    assert batch.tokens.tolist() == [[START_ID, b, c], [START_ID, a, 0]]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4]
    assert batch.targets.tolist() == [b, c, END_ID, a, END_ID]
    assert batch.rows.tolist() == [0, 0, 0, 1, 1]


def test_an_epoch_has_every_target_once_in_batches_near_the_size_asked_for(encoded):
    text = encoded(["a b", "c", "d a b c", "b b b", "a c d"] * 40)
    windows = divide(text, 8)
    batches = [
        make_batch(text, text.is_target(), windows, order) for order in epoch_order(windows, 32, seed=1, epoch=0)
    ]
    expected = Counter(text.tokens[text.is_target()].tolist())
    assert Counter(np.concatenate([batch.targets.numpy() for batch in batches]).tolist()) == expected
    assert max(len(batch.targets) for batch in batches) <= 32
    assert np.mean([len(batch.targets) for batch in batches]) > 24


def test_the_order_is_a_function_of_seed_and_epoch(encoded):
    windows = divide(encoded(["a b", "c", "d a b c"] * 30), 8)

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in shuffled_batches(windows, 16, seed, epoch)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(2, 0)
    assert order(1, 0) != order(1, 1)
