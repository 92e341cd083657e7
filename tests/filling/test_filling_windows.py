from hypothesis import given
from hypothesis import strategies as st
from tiny_masked_models import random_bert, word_piece_tokenizer

from tasks.filling.masked_lm.masked_language_model import Frame, MaskedLanguageModel, window_batches


@given(st.lists(st.booleans(), min_size=1, max_size=400), st.integers(1, 60), st.integers(0, 2), st.integers(0, 2))
def test_windows_show_every_marker_once_with_text_on_either_side(markers, room, before, behind):
    pieces = [-index - 1 if marker else index + 1 for index, marker in enumerate(markers)]
    positions = [index for index, marker in enumerate(markers) if marker]
    if not positions:
        return
    frame = Frame([0] * before, [0] * behind, room)
    windows = frame.windows(pieces, positions)
    shown = [window.pieces[position] for window in windows for position in window.positions]
    assert shown == [pieces[position] for position in positions]
    for window in windows:
        assert len(window.pieces) == before + min(room, len(pieces)) + behind
        inside = window.pieces[before : len(window.pieces) - behind]
        start = pieces.index(inside[0])
        assert inside == pieces[start : start + room]
        for position in window.positions:
            left = position - before
            assert left >= min(room // 8 - 1, start + left)
            assert len(inside) - left >= min(room // 8, len(pieces) - start - left)
    if len(pieces) <= room:
        assert len(windows) == 1


def test_batches_hold_what_they_may():
    frame = Frame([1], [2], 510)
    items = [(i, frame.windows([5] * (i % 40 + 1), [0])[0]) for i in range(300)]
    batches = list(window_batches(items, most_windows=16, vocabulary_size=30000))
    assert sorted(owner for batch in batches for owner, _ in batch) == list(range(300))
    assert max(map(len, batches)) == 16
    many = [(i, frame.windows([5] * 400, list(range(300)))[0]) for i in range(5)]
    # 300 markers of a vocabulary of 50,000 are 15 million scores, nearly as many as go into one batch.
    assert [len(batch) for batch in window_batches(many, most_windows=16, vocabulary_size=50000)] == [1] * 5
    assert [len(batch) for batch in window_batches(many, most_windows=16, vocabulary_size=500)] == [5]
    long = [(i, frame.windows([5] * 510, [0])[0]) for i in range(40)]
    assert [len(batch) for batch in window_batches(long, most_windows=64, vocabulary_size=500)] == [16, 16, 8]
    assert [len(batch) for batch in window_batches(long, most_windows=64, vocabulary_size=500, on_gpu=True)] == [40]


def test_a_long_sentence_is_seen_through_a_window_round_the_marker():
    tokenizer = word_piece_tokenizer()
    language_model = MaskedLanguageModel(random_bert(tokenizer, positions=12), tokenizer, "tiny")
    (pieces,) = language_model.encode([("the cat " * 50, " sat" * 40)])
    assert len(pieces) == 141
    (window,) = language_model.frame.windows(pieces, [100])
    assert len(window.pieces) == 12
    assert window.positions == [6]
    assert window.pieces[6] == language_model.mask_entry
    assert tokenizer.convert_ids_to_tokens(window.pieces) == [
        "[CLS]", "cat", "the", "cat", "the", "cat", "[MASK]", "sat", "sat", "sat", "sat", "[SEP]",
    ]  # fmt: skip
    (window,) = language_model.frame.windows(pieces[95:102], [5])
    assert window.pieces == [2, *pieces[95:102], 3]
    assert language_model.frame.windows(pieces[100:], [0])[0].positions == [1]
    assert language_model.frame.windows(pieces[:101], [100])[0].positions == [10]
